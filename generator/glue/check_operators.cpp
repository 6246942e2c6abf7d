// SPDX-License-Identifier: Apache-2.0
#include "glue/check_operators.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/text.h"
#include "description/two_results.h"
#include "glue/kernel_group.h"

namespace backendgen {

namespace {

constexpr std::size_t kFewOverloads = 8;

std::vector<std::string> all_names(const Catalog& catalog) {
  std::vector<std::string> names;
  names.reserve(catalog.operators().size());
  for (const Operator& op : catalog.operators()) names.push_back(op.schema.name().text());
  return names;
}

std::vector<std::string> all_bases(const Catalog& catalog) {
  std::vector<std::string> bases;
  std::unordered_set<std::string_view> seen;
  for (const Operator& op : catalog.operators()) {
    const std::string& base = op.schema.name().base;
    if (seen.insert(base).second) bases.push_back(base);
  }
  return bases;
}

/// The operator that a user most likely meant by the name `text`, which is no operator's.
std::optional<std::string> guess(const std::string& text, bool for_kernel, const Catalog& catalog) {
  const OperatorName name = OperatorName::parse(text);
  auto near = nearest(text, catalog.overloads(name.base));
  if (near) return near;
  const auto base = name.overload.empty() ? nearest(name.base, all_bases(catalog)) : std::nullopt;
  if (base) {
    if (catalog.find(*base) != nullptr) return base;
    const std::string out = *base + ".out";
    if (for_kernel && catalog.find(out) != nullptr) return out;
    if (!for_kernel) return catalog.overloads(*base).front();
  }
  return nearest(text, all_names(catalog));
}

}  // namespace

void report_unknown_operator(const Text& op, bool for_kernel, const Catalog& catalog,
                             const TorchInstall& torch, Diagnostics& problems) {
  constexpr std::string_view kAten = "aten::";
  const std::string& name = op.value;
  const bool aten = name.starts_with(kAten);
  if (!aten && name.find("::") != std::string::npos) {
    problems.error(fmt::format("{} is not an operator of PyTorch", in_ticks(name)), op.span)
        .notes.push_back("kernels are for PyTorch's own operators, those of `aten`");
    return;
  }
  const std::string local = aten ? name.substr(kAten.size()) : name;
  if (catalog.find(local) != nullptr) {
    problems.error(fmt::format("{} has a namespace", in_ticks(name)), op.span)
        .help.push_back(fmt::format("did you mean `{}`?", local));
    return;
  }
  Diagnostic& error =
      problems.error(fmt::format("no operator {} in PyTorch {}", in_ticks("aten::" + local),
                                 torch.version.minor_text()),
                     op.span);
  const auto near = guess(local, for_kernel, catalog);
  if (near) error.help.push_back(fmt::format("did you mean `{}`?", *near));
  const std::string base = OperatorName::parse(near.value_or(local)).base;
  const std::vector<std::string> overloads = catalog.overloads(base);
  if (overloads.size() > 1 && overloads.size() <= kFewOverloads) {
    error.notes.push_back(fmt::format("the overloads of `{}` are {}", base, enumerate(overloads)));
  }
}

namespace {

/// Autograd differentiates such an operator through what it is made of, unless a backend has a
/// kernel for it: then the kernel is called, no graph is recorded, and gradients stop there.
bool loses_gradient(const Operator& op) {
  const auto returns = op.schema.returns();
  return op.composite_implicit && op.schema.kind() != SchemaKind::kOut &&
         std::any_of(returns.begin(), returns.end(),
                     [](const Return& result) { return result.type.tensor_like(); });
}

/// Why an operator cannot have dense inputs; empty when it can.
Result<void> judge_dense(const Operator& op) {
  constexpr std::array<std::string_view, 6> kMakeDense = {
      "_copy_from", "_copy_from_and_resize", "_to_copy", "clone", "contiguous", "copy_"};
  const std::string name = op.schema.name().text();
  if (std::find(kMakeDense.begin(), kMakeDense.end(), name) != kMakeDense.end()) {
    return Failure{"tensors are made dense by it"};
  }
  if (op.inplace_view) return Failure{"it changes the tensor that the caller has, not a copy"};
  if (op.schema.views())
    return Failure{"its result is a view of what the caller has, not of a copy"};
  return {};
}

void warn(const Kernel& kernel, const Operator& op, const Catalog& catalog,
          const std::unordered_set<std::string>& named, Diagnostics& problems) {
  const std::string& name = kernel.op.value;
  if (loses_gradient(op)) {
    problems.warning(fmt::format("with a kernel, `{}` has no gradient", name), kernel.op.span)
        .notes.push_back(
            "PyTorch makes it of other operators and differentiates those; a "
            "backend's own kernel replaces both");
  }
  if (op.schema.kind() != SchemaKind::kOut || is_structured_out(op)) return;
  for (const Operator* other : catalog.group(op)) {
    const std::string variant = other->schema.name().text();
    const bool left_out = other->schema.kind() == SchemaKind::kFunctional && needs_kernel(*other) &&
                          !named.contains(variant);
    if (!left_out) continue;
    problems.warning(fmt::format("`{}` does not follow from `{}`", variant, name), kernel.op.span)
        .help.push_back(fmt::format("name `{}` instead: `{}` follows from it", variant, name));
  }
}

bool same_parameters(const Signature& a, const Signature& b) {
  return std::equal(
      a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(),
      [](const Parameter& one, const Parameter& other) { return one.type == other.type; });
}

/// Judges one kernel; empty when its operator has no C++ type.
std::optional<Signature> check_kernel(const Kernel& kernel, const Catalog& catalog,
                                      const std::unordered_set<std::string>& named,
                                      const TorchInstall& torch, Diagnostics& problems) {
  const std::string& name = kernel.op.value;
  const Operator* op = catalog.find(name);
  if (op == nullptr) {
    report_unknown_operator(kernel.op, true, catalog, torch, problems);
    return std::nullopt;
  }
  auto signature = kernel_signature(*op);
  if (!signature) {
    problems
        .error(fmt::format("`{}` cannot have a kernel: {}", name, signature.why()), kernel.op.span)
        .notes.push_back(fmt::format("its schema is `{}`", op->schema.text()));
    return std::nullopt;
  }
  if (kernel.inputs == Inputs::kDense) {
    if (const auto good = judge_dense(*op); !good) {
      problems
          .error(fmt::format("`{}` cannot have dense inputs: {}", name, good.why()), kernel.op.span)
          .help.push_back(
              fmt::format("write `\"{}\" = {{ function = \"{}\", inputs = \"strided\" }}`", name,
                          kernel.function.value));
    }
  }
  warn(kernel, *op, catalog, named, problems);
  return *signature;
}

}  // namespace

std::vector<std::optional<Signature>> check_operators(const Description& description,
                                                      const Catalog& catalog,
                                                      const TorchInstall& torch,
                                                      Diagnostics& problems) {
  const std::vector<Kernel>& kernels = description.kernels;
  const auto named = named_operators(description);
  std::vector<std::optional<Signature>> signatures;
  // Functions may be overloaded and may serve several operators, but C++ tells overloads apart by
  // only their parameters.
  std::unordered_map<std::string_view, std::vector<std::size_t>> uses;  // by "foo::add"
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    signatures.push_back(check_kernel(kernels[i], catalog, named, torch, problems));
    if (!signatures[i]) continue;
    std::vector<std::size_t>& others = uses[kernels[i].function.value];
    const auto same = std::find_if(others.begin(), others.end(), [&](std::size_t other) {
      return same_parameters(*signatures[i], *signatures[other]);
    });
    if (same == others.end()) {
      others.push_back(i);
    } else if (signatures[*same]->return_type != signatures[i]->return_type) {
      report_two_results(
          {kernels[i].function, kernels[i].op.value, signatures[i]->return_type},
          {kernels[*same].function, kernels[*same].op.value, signatures[*same]->return_type},
          problems);
    }
  }
  return signatures;
}

}  // namespace backendgen
