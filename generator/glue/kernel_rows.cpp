// SPDX-License-Identifier: Apache-2.0
#include "glue/kernel_rows.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace backendgen {

namespace {

std::vector<std::string_view> sorted_once(std::vector<std::string_view> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

/// The template list for `header`: each once, sorted.
std::vector<Values> rows_of(std::vector<std::string_view> headers) {
  std::vector<Values> rows;
  for (const std::string_view header : sorted_once(std::move(headers))) {
    rows.push_back({{{"header", std::string(header)}}, {}, {}});
  }
  return rows;
}

/// Adds the members of a kernel's traits that differ from those of backendkit::KernelTraits, a line
/// each.
void add_choices(const KernelModel& kernel, std::string& text) {
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
}

/// Adds what backendkit::Structured wants to know: PyTorch's meta class, how to call it and then
/// the kernel.
void add_structured(const KernelModel& kernel, std::string& text) {
  fmt::format_to(std::back_inserter(text), R"(
  using Meta = at::meta::structured_{};
  static constexpr std::size_t kOutputs = {};

  template <class Call>
  static void run(Call& call, {}) {{
    {}call.meta({});
    if (call.ready({})) {{
      {}({});
    }}
  }})",
                 kernel.meta_class, kernel.outputs, kernel.meta_parameters,
                 kernel.has_precomputed ? "const auto precomputed = " : "", kernel.meta_arguments,
                 kernel.meta_arguments, kernel.function, kernel.call_arguments);
}

/// Functions are told apart by what they are declared with; one may serve several operators.
std::tuple<std::string_view, std::string_view, std::string_view> function_key(
    const KernelModel& kernel) {
  return {kernel.function_namespace, kernel.function_name,
          std::string_view(kernel.signature).substr(kernel.return_type.size())};
}

Kernels by_function(Kernels kernels) {
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelModel* a, const KernelModel* b) {
    return function_key(*a) < function_key(*b);
  });
  return kernels;
}

}  // namespace

Kernels all_of(const std::vector<KernelModel>& models) {
  Kernels kernels;
  kernels.reserve(models.size());
  for (const KernelModel& model : models) kernels.push_back(&model);
  return kernels;
}

std::string declarations(const Kernels& kernels) {
  std::string text;
  const Kernels sorted = by_function(kernels);
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
    const bool again =
        i + 1 < sorted.size() && function_key(kernel) == function_key(*sorted[i + 1]);
    if (!again) text.append(kernel.declaration).append("\n\n");
  }
  if (!sorted.empty()) close(sorted.back()->function_namespace);
  if (!text.empty()) text.pop_back();
  return text;
}

std::string short_declarations(const Kernels& kernels) {
  std::string text;
  const KernelModel* last = nullptr;
  for (const KernelModel* kernel : by_function(kernels)) {
    if (last != nullptr && function_key(*last) == function_key(*kernel)) continue;
    last = kernel;
    const std::string& scope = kernel->function_namespace;
    if (!text.empty()) text += '\n';
    if (!scope.empty()) text.append("namespace ").append(scope).append(" { ");
    text.append(kernel->return_type).append(" ").append(kernel->function_name);
    text.append(kernel->signature, kernel->return_type.size() + 1).append(";");
    if (!scope.empty()) text += " }";
  }
  return text;
}

std::vector<Values> header_rows(const Kernels& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel* kernel : kernels) {
    headers.insert(headers.end(), kernel->headers.begin(), kernel->headers.end());
  }
  return rows_of(std::move(headers));
}

std::vector<Values> meta_header_rows(const Kernels& kernels) {
  std::vector<std::string_view> headers;
  for (const KernelModel* kernel : kernels) {
    if (kernel->structured()) headers.push_back(kernel->meta_header);
  }
  return rows_of(std::move(headers));
}

std::string kernel_structs(const Kernels& kernels) {
  std::string text;
  const auto add = [&](auto... parts) { (text.append(parts), ...); };
  for (const KernelModel* kernel : kernels) {
    add(text.empty() ? "" : "\n\n", "struct ", kernel->op_id,
        "_kernel : backendkit::KernelTraits {\n");
    add("  static constexpr const char* kArguments = \"", kernel->names, "\";");
    add_choices(*kernel, text);
    if (kernel->structured()) add_structured(*kernel, text);
    add("\n};");
  }
  return text;
}

std::string registration_lines(const Kernels& kernels) {
  std::string text;
  for (const KernelModel* kernel : kernels) {
    for (const RegistrationModel& one : kernel->registrations) {
      if (!text.empty()) text += '\n';
      text.append("  library.impl(\"").append(one.op).append("\", &");
      text.append(one.kernel).append("::call);");
    }
  }
  return text;
}

std::string operator_lines(const Kernels& kernels) {
  std::vector<std::string_view> operators;
  for (const KernelModel* kernel : kernels) {
    for (const RegistrationModel& one : kernel->registrations) operators.push_back(one.op);
  }
  std::string text;
  for (const std::string_view op : sorted_once(std::move(operators))) {
    text.append("    \"").append(op).append("\",\n");
  }
  return text;
}

std::vector<Kernels> shards(const Kernels& kernels) {
  constexpr std::size_t kAboutAsMany = 50;  // kernels in a file
  const std::size_t count = std::bit_ceil((kernels.size() + kAboutAsMany - 1) / kAboutAsMany);
  std::vector<Kernels> files(count);
  for (const KernelModel* kernel : kernels) {
    const std::uint64_t hash = hash_of(kernel->root);
    // Of short names the low bits of the hash are much the same: they would fill one file.
    files[(hash ^ hash >> 15 ^ hash >> 29) % count].push_back(kernel);
  }
  std::erase_if(files, [](const auto& file) { return file.empty(); });
  return files;
}

}  // namespace backendgen
