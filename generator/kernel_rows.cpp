// SPDX-License-Identifier: Apache-2.0
#include "kernel_rows.h"

#include <algorithm>
#include <bit>
#include <cstdint>
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

/// A row for each word, once, sorted.
std::vector<Values> rows_of(std::vector<std::string_view> words, const char* name) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<Values> rows;
  rows.reserve(words.size());
  for (const std::string_view word : words) {
    rows.emplace_back().texts.emplace(name, std::string(word));
  }
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
  const auto key = [](const KernelModel& kernel) {
    return std::tuple(std::string_view(kernel.function_namespace),
                      std::string_view(kernel.function_name),
                      std::string_view(kernel.signature).substr(kernel.return_type.size()));
  };
  std::vector<const KernelModel*> sorted;
  for (const KernelModel& kernel : kernels) sorted.push_back(&kernel);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const KernelModel* a, const KernelModel* b) { return key(*a) < key(*b); });
  std::vector<Values> rows;
  const KernelModel* before = nullptr;
  const auto close = [&] {
    if (before == nullptr || before->function_namespace.empty()) return;
    rows.back().texts["closes"] =
        fmt::format("\n}}  // namespace {}\n", before->function_namespace);
  };
  for (const KernelModel* kernel : sorted) {
    if (before != nullptr && key(*before) == key(*kernel)) {
      rows.back().texts["schemas"] += "\n// " + kernel->schema;
      continue;
    }
    const std::string& scope = kernel->function_namespace;
    const bool begins = before == nullptr || before->function_namespace != scope;
    if (begins) close();
    const std::string head = fmt::format("{} {}", kernel->return_type, kernel->function_name);
    rows.emplace_back().texts = {
        {"opens", begins && !scope.empty() ? fmt::format("namespace {} {{\n\n", scope) : ""},
        {"closes", ""},
        {"schemas", "// " + kernel->schema},
        {"return_type", kernel->return_type},
        {"function_name", kernel->function_name},
        {"parameters", wrapped(head, kernel->parameters)}};
    before = kernel;
  }
  close();
  return rows;
}

std::vector<Values> header_rows(const std::vector<KernelModel>& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel& kernel : kernels) {
    headers.insert(headers.end(), kernel.headers.begin(), kernel.headers.end());
  }
  return rows_of(std::move(headers), "header");
}

std::vector<Values> meta_header_rows(const std::vector<KernelModel>& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel& kernel : kernels) {
    if (kernel.structured()) headers.push_back(kernel.meta_header);
  }
  return rows_of(std::move(headers), "header");
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
  std::vector<std::string_view> operators;
  for (const KernelModel& kernel : kernels) {
    for (const RegistrationModel& one : kernel.registrations) operators.push_back(one.op);
  }
  return rows_of(std::move(operators), "op");
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
