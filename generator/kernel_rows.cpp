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

/// A row for each word, once, sorted.
std::vector<Values> rows_of(std::vector<std::string_view> words, const char* name) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<Values> rows;
  rows.reserve(words.size());
  for (const std::string_view word : words) {
    rows.emplace_back().texts.add(name, std::string(word));
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

/// The members of a kernel's traits that differ from those of backendkit::KernelTraits, a line
/// each.
std::string choices(const KernelModel& kernel) {
  std::string text;
  const auto choose = [&](bool differs, std::string_view member, std::string_view value) {
    if (!differs) return;
    text.append("\n  static constexpr ").append(member).append(" = ").append(value).append(";");
  };
  choose(!kernel.one_device, "bool kOneDevice", "false");
  choose(kernel.dense, "auto kInputs", "backendkit::Inputs::kDense");
  choose(!kernel.dtypes.empty(), "auto kDtypes", kernel.dtypes);
  choose(kernel.error, "auto kUnsupported", "backendkit::Unsupported::kError");
  choose(kernel.elementwise, "bool kElementwise", "true");
  choose(kernel.has_dtype, "bool kHasDtype", "true");
  return text;
}

}  // namespace

Kernels all_of(const std::vector<KernelModel>& models) {
  Kernels kernels;
  kernels.reserve(models.size());
  for (const KernelModel& model : models) kernels.push_back(&model);
  return kernels;
}

std::string declarations(const Kernels& kernels) {
  // Functions are told apart by what they are declared with; one may serve several operators.
  const auto key = [](const KernelModel& kernel) {
    return std::tuple(std::string_view(kernel.function_namespace),
                      std::string_view(kernel.function_name),
                      std::string_view(kernel.signature).substr(kernel.return_type.size()));
  };
  Kernels sorted = kernels;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const KernelModel* a, const KernelModel* b) { return key(*a) < key(*b); });
  std::string text;
  const auto close = [&](const std::string& scope) {
    if (!scope.empty()) text.append("}  // namespace ").append(scope).append("\n\n");
  };
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const KernelModel& kernel = *sorted[i];
    const std::string& scope = kernel.function_namespace;
    const bool begins = i == 0 || sorted[i - 1]->function_namespace != scope;
    if (i != 0 && begins) close(sorted[i - 1]->function_namespace);
    if (begins && !scope.empty()) text.append("namespace ").append(scope).append(" {\n\n");
    text.append("// ").append(kernel.schema).append("\n");
    const bool again = i + 1 < sorted.size() && key(kernel) == key(*sorted[i + 1]);
    if (!again) text.append(kernel.declaration).append("\n\n");
  }
  if (!sorted.empty()) close(sorted.back()->function_namespace);
  if (!text.empty()) text.pop_back();
  return text;
}

std::vector<Values> header_rows(const Kernels& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel* kernel : kernels) {
    headers.insert(headers.end(), kernel->headers.begin(), kernel->headers.end());
  }
  return rows_of(std::move(headers), "header");
}

std::vector<Values> meta_header_rows(const Kernels& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel* kernel : kernels) {
    if (kernel->structured()) headers.push_back(kernel->meta_header);
  }
  return rows_of(std::move(headers), "header");
}

std::vector<Values> kernel_rows(const Kernels& kernels) {
  std::vector<Values> rows;
  rows.reserve(kernels.size());
  for (const KernelModel* kernel : kernels) {
    Values& row = rows.emplace_back();
    row.texts.reserve(10);
    row.texts.add("op_id", kernel->op_id);
    row.texts.add("names", kernel->names);
    row.texts.add("choices", choices(*kernel));
    row.sections.add("structured", kernel->structured());
    if (kernel->structured()) {
      row.texts.add("function", kernel->function);
      row.texts.add("meta_class", kernel->meta_class);
      row.texts.add("meta_parameters", kernel->meta_parameters);
      row.texts.add("meta_arguments", kernel->meta_arguments);
      row.texts.add("call_arguments", kernel->call_arguments);
      row.texts.add("precomputed", kernel->has_precomputed ? "const auto precomputed = " : "");
      row.texts.add("outputs", fmt::format("{}", kernel->outputs));
    }
    std::vector<Values>& registrations = row.lists["registrations"];
    registrations.reserve(kernel->registrations.size());
    for (const RegistrationModel& one : kernel->registrations) {
      Values& registration = registrations.emplace_back();
      registration.texts.add("registered", one.op);
      registration.texts.add("kernel", one.kernel);
    }
  }
  return rows;
}

std::vector<Values> operator_rows(const Kernels& kernels) {
  std::vector<std::string_view> operators;
  for (const KernelModel* kernel : kernels) {
    for (const RegistrationModel& one : kernel->registrations) operators.push_back(one.op);
  }
  return rows_of(std::move(operators), "op");
}

std::vector<Kernels> shards(const Kernels& kernels) {
  constexpr std::size_t kAboutAsMany = 50;  // kernels in a file
  const std::size_t count = std::bit_ceil((kernels.size() + kAboutAsMany - 1) / kAboutAsMany);
  std::vector<Kernels> files(count);
  for (const KernelModel* kernel : kernels) {
    files[hash(kernel->root) % count].push_back(kernel);
  }
  std::erase_if(files, [](const auto& file) { return file.empty(); });
  return files;
}

}  // namespace backendgen
