// SPDX-License-Identifier: Apache-2.0
#include "glue/kernel_group.h"

#include <algorithm>
#include <utility>

namespace backendgen {

namespace {

/// Whether every result is a tensor, and written to a tensor of the caller if there is one.
bool only_tensors(const Schema& schema) {
  const auto returns = schema.returns();
  return !returns.empty() && std::all_of(returns.begin(), returns.end(), [](const Return& one) {
    return one.type.is(Atom::kTensor);
  });
}

/// Without results to write to; a functional operator that makes tensors from nothing has dtype,
/// layout, device and pin_memory as well, which its out= variant lacks.
std::size_t input_count(const Schema& schema) {
  return schema.arguments().size() - schema.out().size();
}

/// Arguments that are written to. `rrelu_with_noise.out` fills in its `noise` beside its result,
/// which `rrelu_with_noise_functional` returns.
std::size_t written_count(const Schema& schema) {
  const auto arguments = schema.arguments();
  return static_cast<std::size_t>(std::count_if(arguments.begin(), arguments.end(),
                                                [](const Argument& one) { return one.write(); }));
}

std::optional<Derivation> derivation(const Operator& from, const Operator& to) {
  const SchemaKind source = from.schema.kind();
  const SchemaKind target = to.schema.kind();
  if (is_structured_out(from)) {
    if (to.delegate != from.schema.name().text()) return std::nullopt;
    if (target == SchemaKind::kFunctional) return Derivation::kStructuredFunctional;
    if (target == SchemaKind::kInplace) return Derivation::kStructuredInPlace;
    return std::nullopt;
  }
  if (to.const_ref_for_mutable) return std::nullopt;  // `resize_`: gives its tensor another shape
  if (!needs_kernel(to) || !only_tensors(from.schema) || !only_tensors(to.schema)) {
    return std::nullopt;
  }
  // A view shares memory with its argument; a result that was copied from it would not.
  if (source == SchemaKind::kFunctional && from.schema.returns()[0].alias) return std::nullopt;
  if (input_count(from.schema) != input_count(to.schema)) return std::nullopt;
  const std::size_t results = from.schema.returns().size();
  if (written_count(to.schema) != results) return std::nullopt;
  if (target == SchemaKind::kOut) {
    const bool all = source == SchemaKind::kFunctional && to.schema.out().size() == results;
    return all ? std::optional(Derivation::kOutOfFunctional) : std::nullopt;
  }
  if (target != SchemaKind::kInplace || results != 1) return std::nullopt;
  if (source == SchemaKind::kFunctional) return Derivation::kInPlaceOfFunctional;
  if (source == SchemaKind::kOut && written_count(from.schema) == 1) {
    return Derivation::kInPlaceOfOut;
  }
  return std::nullopt;
}

/// Of two kernels that an operator would follow from, the one with the lower rank gives it.
int rank(const Operator& from) {
  if (is_structured_out(from)) return 0;
  return from.schema.kind() == SchemaKind::kFunctional ? 1 : 2;
}

}  // namespace

bool needs_kernel(const Operator& op) {
  return !op.composite_implicit && !op.composite_explicit;
}

Result<Signature> kernel_signature(const Operator& op) {
  if (!is_structured_out(op)) return cpp_signature(op, SymInts::kNumbers);
  auto structured = structured_signature(op);
  if (!structured) return Failure{structured.why()};
  return Signature{"void", std::move(structured->kernel)};
}

bool is_structured_out(const Operator& op) {
  return op.structured && op.delegate.empty() && op.schema.kind() == SchemaKind::kOut;
}

std::unordered_set<std::string> named_operators(const Description& description) {
  std::unordered_set<std::string> names;
  for (const Kernel& kernel : description.kernels) names.insert(kernel.op.value);
  return names;
}

std::vector<ServedOperator> served_operators(const Kernel& kernel,
                                             const std::unordered_set<std::string>& named,
                                             const Catalog& catalog) {
  const Operator& op = *catalog.find(kernel.op.value);
  std::vector<ServedOperator> result = {
      {&op, is_structured_out(op) ? Derivation::kStructuredOut : Derivation::kNamed}};
  const std::vector<const Operator*> group = catalog.group(op);
  const auto is_named = [&](const Operator* one) {
    return named.contains(one->schema.name().text());
  };
  for (const Operator* other : group) {
    if (other == &op || is_named(other)) continue;
    const auto how = derivation(op, *other);
    if (!how) continue;
    const bool given = std::any_of(group.begin(), group.end(), [&](const Operator* one) {
      // Between equal ranks the order in the catalog decides, where both are elements of one
      // vector.
      const bool first = std::pair(rank(*one), one) < std::pair(rank(op), &op);
      return first && is_named(one) && derivation(*one, *other);
    });
    if (!given) result.push_back({other, *how});
  }
  return result;
}

}  // namespace backendgen
