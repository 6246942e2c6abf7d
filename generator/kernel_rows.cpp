// SPDX-License-Identifier: Apache-2.0
#include "kernel_rows.h"

#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace backendgen {

namespace {

constexpr std::size_t kColumns = 100;

/// Parameters as they stand behind `head`; one a line when the declaration is too long for one
/// line.
std::string wrapped(const std::string& head, const std::string& parameters) {
  if (head.size() + parameters.size() + std::string_view("();").size() <= kColumns) {
    return parameters;
  }
  std::string text = "\n    ";
  int depth = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const char letter = parameters[i];
    text += letter;
    if (letter == '<') ++depth;
    if (letter == '>') --depth;
    if (letter != ',' || depth != 0) continue;
    text += "\n    ";
    ++i;  // the space behind the comma
  }
  return text;
}

std::vector<Values> rows_of(const std::set<std::string>& words, const char* name) {
  std::vector<Values> rows;
  for (const std::string& word : words) rows.push_back({{{name, word}}, {}, {}});
  return rows;
}

/// FNV-1a: the same for the same text on every machine.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const char letter : text) {
    value = (value ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
  }
  return value;
}

}  // namespace

std::vector<Values> declaration_rows(const std::vector<KernelModel>& kernels) {
  // Functions are told apart by what they are declared with; one may serve several operators.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const KernelModel*>>
      functions;
  for (const KernelModel& kernel : kernels) {
    const std::string types = kernel.signature.substr(kernel.return_type.size());
    functions[{kernel.function_namespace, kernel.function_name, types}].push_back(&kernel);
  }
  std::vector<Values> rows;
  const std::string* open = nullptr;
  for (const auto& [key, served] : functions) {
    const KernelModel& kernel = *served.front();
    const std::string& scope = std::get<0>(key);
    const bool begins = open == nullptr || *open != scope;
    if (begins && open != nullptr && !open->empty()) {
      rows.back().texts["closes"] = fmt::format("\n}}  // namespace {}\n", *open);
    }
    std::vector<std::string> schemas;
    for (const KernelModel* one : served) schemas.push_back("// " + one->schema);
    const std::string head = fmt::format("{} {}", kernel.return_type, kernel.function_name);
    rows.push_back(
        {{{"opens", begins && !scope.empty() ? fmt::format("namespace {} {{\n\n", scope) : ""},
          {"closes", ""},
          {"schemas", fmt::format("{}", fmt::join(schemas, "\n"))},
          {"return_type", kernel.return_type},
          {"function_name", kernel.function_name},
          {"parameters", wrapped(head, kernel.parameters)}},
         {},
         {}});
    open = &scope;
  }
  if (open != nullptr && !open->empty()) {
    rows.back().texts["closes"] = fmt::format("\n}}  // namespace {}\n", *open);
  }
  return rows;
}

std::vector<Values> header_rows(const std::vector<KernelModel>& kernels) {
  std::set<std::string> headers;
  for (const KernelModel& kernel : kernels) {
    headers.insert(kernel.headers.begin(), kernel.headers.end());
  }
  return rows_of(headers, "header");
}

std::vector<Values> meta_header_rows(const std::vector<KernelModel>& kernels) {
  std::set<std::string> headers;
  for (const KernelModel& kernel : kernels) {
    if (kernel.structured()) headers.insert(kernel.meta_header);
  }
  return rows_of(headers, "header");
}

std::vector<Values> kernel_rows(const std::vector<KernelModel>& kernels) {
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  std::vector<Values> rows;
  for (const KernelModel& kernel : kernels) {
    Values& row = rows.emplace_back();
    row.texts = {{"op", kernel.op},
                 {"op_id", kernel.op_id},
                 {"function", kernel.function},
                 {"names", kernel.names},
                 {"dtypes", kernel.dtypes},
                 {"one_device", flag(kernel.one_device)},
                 {"inputs", kernel.dense ? "kDense" : "kStrided"},
                 {"unsupported", kernel.error ? "kError" : "kFallback"},
                 {"meta_class", kernel.meta_class},
                 {"meta_parameters", kernel.meta_parameters},
                 {"meta_arguments", kernel.meta_arguments},
                 {"call_arguments", kernel.call_arguments},
                 {"precomputed", kernel.has_precomputed ? "const auto precomputed = " : ""},
                 {"outputs", fmt::format("{}", kernel.outputs)},
                 {"elementwise", flag(kernel.elementwise)},
                 {"has_dtype", flag(kernel.has_dtype)}};
    row.sections = {{"structured", kernel.structured()}};
    auto& registrations = row.lists["registrations"];
    for (const RegistrationModel& one : kernel.registrations) {
      registrations.push_back({{{"registered", one.op}, {"kernel", one.kernel}}, {}, {}});
    }
  }
  return rows;
}

std::vector<Values> operator_rows(const std::vector<KernelModel>& kernels) {
  std::set<std::string> operators;
  for (const KernelModel& kernel : kernels) {
    for (const RegistrationModel& one : kernel.registrations) operators.insert(one.op);
  }
  return rows_of(operators, "op");
}

std::vector<std::vector<KernelModel>> shards(const std::vector<KernelModel>& kernels) {
  constexpr std::size_t kAboutAsMany = 50;  // kernels in a file
  const std::size_t count = std::bit_ceil((kernels.size() + kAboutAsMany - 1) / kAboutAsMany);
  std::vector<std::vector<KernelModel>> files(count);
  for (const KernelModel& kernel : kernels) {
    files[hash(kernel.root) % count].push_back(kernel);
  }
  std::erase_if(files, [](const auto& file) { return file.empty(); });
  return files;
}

}  // namespace backendgen
