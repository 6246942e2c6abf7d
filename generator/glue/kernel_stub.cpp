// SPDX-License-Identifier: Apache-2.0
#include "glue/kernel_stub.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "base/text.h"
#include "description/validate.h"
#include "glue/check_operators.h"
#include "glue/template.h"

namespace backendgen {

namespace {

/// A function for a kernel of this operator that no kernel has yet: `foo::add` for "add.out", or
/// with the overload, `foo::add_out`, where that is taken or no name in C++ (`and`, `__and__`).
std::string function_for(const OperatorName& name, const std::string& scope,
                         const std::vector<Kernel>& kernels) {
  std::string base = name.base;
  while (base.starts_with('_')) base.erase(0, 1);
  while (base.ends_with("__")) base.pop_back();
  std::string full = base + '_' + (name.overload.empty() ? "kernel" : name.overload);
  // C++ reserves names with two underscores side by side: those of `set_` and `source_Tensor`.
  while (full.find("__") != std::string::npos) full.erase(full.find("__"), 1);
  for (const std::string& candidate : {scope + base, scope + full}) {
    const bool taken = std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
      return kernel.function.value == candidate;
    });
    if (!taken && !judge_cpp_name(candidate)) return candidate;
  }
  return scope + full + "_kernel";
}

Kernel kernel_for(const std::string& op, const std::string& function) {
  Kernel kernel;
  kernel.op.value = op;
  kernel.function.value = function;
  return kernel;
}

Values stub_values(const Kernel& kernel, const Operator& op, const Signature& signature) {
  const std::string& function = kernel.function.value;
  return {{{"op_quoted", quote(kernel.op.value)},
           {"function_quoted", quote(function)},
           {"schema", "aten::" + op.schema.text()},
           {"head", signature.head(function, 2)},
           {"message_quoted",
            quote(fmt::format("{} (aten::{}) is not written yet", function, kernel.op.value))}},
          {},
          {}};
}

}  // namespace

std::optional<std::string> kernel_stubs(const std::string& operators,
                                        const Description* description, const Catalog& catalog,
                                        const TorchInstall& torch, Diagnostics& problems) {
  const std::size_t errors = problems.error_count();
  const std::string scope = description == nullptr ? "foo::" : description->name.value + "::";
  Description wanted;  // with only these kernels
  std::vector<Kernel> taken;
  if (description != nullptr) taken = description->kernels;
  for (const std::string& name : split_list(operators)) {
    const auto is_it = [&](const Kernel& kernel) { return kernel.op.value == name; };
    if (std::any_of(wanted.kernels.begin(), wanted.kernels.end(), is_it)) {
      problems.error(fmt::format("operator `{}` is listed twice", name));
      continue;
    }
    const auto own = std::find_if(taken.begin(), taken.end(), is_it);
    if (own != taken.end()) {
      wanted.kernels.push_back(kernel_for(name, own->function.value));
      continue;
    }
    const std::string function = function_for(OperatorName::parse(name), scope, taken);
    wanted.kernels.push_back(kernel_for(name, function));
    taken.push_back(wanted.kernels.back());
  }
  if (wanted.kernels.empty()) problems.error("`--stub` names no operator");
  const auto signatures = check_operators(wanted, catalog, torch, problems);
  if (problems.error_count() != errors) return std::nullopt;
  Values values;
  auto& rows = values.lists["kernels"];
  for (std::size_t i = 0; i < wanted.kernels.size(); ++i) {
    const Kernel& kernel = wanted.kernels[i];
    const Operator& op = *catalog.find(kernel.op.value);
    if (!op.delegate.empty()) {
      problems
          .warning(fmt::format("a kernel for `{}` gives `{}` too", op.delegate, kernel.op.value))
          .help.push_back(fmt::format("`backendgen ops --stub {}`", op.delegate));
    }
    rows.push_back(stub_values(kernel, op, *signatures[i]));
  }
  return fill(find_template("ops/stub.cpp"), values);
}

}  // namespace backendgen
