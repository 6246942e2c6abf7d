// SPDX-License-Identifier: Apache-2.0
#include "ops/states.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "glue/kernel_group.h"
#include "ops/builtin.h"

namespace backendgen {

namespace {

/// A line of [operators.kernels] that answers an operator.
struct Owner {
  const Kernel* kernel;
  bool named;  // the line names the operator itself
};

/// The operators that the kernels of a description answer, by name.
std::unordered_map<std::string, Owner> owners(const Catalog& catalog,
                                              const Description& description) {
  std::unordered_map<std::string, Owner> found;
  const auto named = named_operators(description);
  for (const Kernel& kernel : description.kernels) {
    if (catalog.find(kernel.op.value) == nullptr) continue;
    for (const ServedOperator& answer : served_operators(kernel, named, catalog)) {
      found.insert_or_assign(answer.op->schema.name().text(),
                             Owner{&kernel, answer.how == Derivation::kNamed ||
                                                answer.how == Derivation::kStructuredOut});
    }
  }
  return found;
}

/// Whether a dispatch table has a kernel that works with tensors in the host's memory. MKL-DNN's
/// tensors and nested ones have no form on another device.
bool has_host_kernel(const Operator& op) {
  if (op.on_cpu) return true;
  const std::vector<std::string> keys = split_list(op.dispatch);
  return std::any_of(keys.begin(), keys.end(), [](std::string_view key) {
    return key == "SparseCPU" || key == "SparseCsrCPU" || key == "QuantizedCPU";
  });
}

/// Judges operators one by one; those that an operator is made of first.
class Judge {
 public:
  Judge(const Catalog& catalog, const Description* description)
      : catalog_(catalog),
        error_(description != nullptr && description->fallback == Fallback::kError) {
    if (description != nullptr) owners_ = owners(catalog, *description);
  }

  OperatorStatus judge(const Operator& op) const {
    const std::string name = op.schema.name().text();
    if (const auto found = owners_.find(name); found != owners_.end()) {
      const Kernel& kernel = *found->second.kernel;
      return {&op, OperatorState::kKernel, kernel.function.value,
              found->second.named ? "" : kernel.op.value};
    }
    if (is_builtin(name)) return {&op, OperatorState::kBuiltIn};
    const bool hosted = is_hosted(name) && !has_out_kernel(name);
    if (!hosted && !falls_back_first(name)) {
      if (!op.delegate.empty()) return through(op, op.delegate);
      if (op.derived) return through(op, op.base);
      if (!needs_kernel(op)) return {&op, OperatorState::kFree};
      if (!has_host_kernel(op)) return {&op, OperatorState::kCannot};
    }
    return {&op, error_ ? OperatorState::kError : OperatorState::kFallback};
  }

 private:
  /// BackendKit leaves a function to its out= variant where that has a kernel.
  bool has_out_kernel(const std::string& name) const { return owners_.contains(name + ".out"); }

  /// Whether the fallback to the CPU comes before what PyTorch makes of other operators.
  bool falls_back_first(std::string_view name) const {
    const Composite* const composite = error_ ? nullptr : find_composite(name);
    if (composite == nullptr) return false;
    const auto has_piece = [this](std::string_view piece) {
      return piece.empty() || owners_.contains(std::string(piece));
    };
    const auto& pieces = composite->pieces;
    return pieces.front().empty() || !std::all_of(pieces.begin(), pieces.end(), has_piece);
  }

  /// An operator that does nothing but call another one.
  OperatorStatus through(const Operator& op, const std::string& other) const {
    const Operator* called = catalog_.find(other);
    OperatorState state = OperatorState::kFree;
    if (called != nullptr) {
      const OperatorState its = judge(*called).state;
      if (its == OperatorState::kError || its == OperatorState::kCannot) state = its;
    }
    return {&op, state, "", other};
  }

  const Catalog& catalog_;
  const bool error_;
  std::unordered_map<std::string, Owner> owners_;
};

}  // namespace

std::string OperatorStatus::reason() const {
  if (!through.empty()) {
    return fmt::format("{}{}from {}", function, function.empty() ? "" : ", ", through);
  }
  if (state == OperatorState::kFree) return "composite";
  if (state == OperatorState::kCannot && !op->dispatch.empty()) {
    return fmt::format("only for {}", op->dispatch);
  }
  const bool on_cpu = state == OperatorState::kFallback || state == OperatorState::kError;
  const std::string name = op->schema.name().text();
  if (on_cpu && (is_hosted(name) || find_composite(name) != nullptr)) return "by BackendKit";
  return function;
}

std::array<OperatorState, kOperatorStates> operator_states() {
  return {OperatorState::kKernel,   OperatorState::kFree,  OperatorState::kBuiltIn,
          OperatorState::kFallback, OperatorState::kError, OperatorState::kCannot};
}

std::string_view state_name(OperatorState state) {
  switch (state) {
    case OperatorState::kKernel:
      return "kernel";
    case OperatorState::kFree:
      return "free";
    case OperatorState::kBuiltIn:
      return "built-in";
    case OperatorState::kFallback:
      return "fallback";
    case OperatorState::kError:
      return "error";
    case OperatorState::kCannot:
      return "cannot";
  }
  return {};
}

std::vector<OperatorStatus> judge_operators(const Catalog& catalog,
                                            const Description* description) {
  const Judge judge(catalog, description);
  std::vector<OperatorStatus> operators;
  operators.reserve(catalog.operators().size());
  for (const Operator& op : catalog.operators()) operators.push_back(judge.judge(op));
  return operators;
}

StateCounts count_states(const std::vector<OperatorStatus>& operators) {
  StateCounts counts{};
  for (const OperatorStatus& status : operators) ++counts[static_cast<std::size_t>(status.state)];
  return counts;
}

std::string counts_text(const StateCounts& counts) {
  std::vector<std::string> parts;
  for (const OperatorState state : operator_states()) {
    const std::size_t count = counts[static_cast<std::size_t>(state)];
    if (count != 0) parts.push_back(fmt::format("{} {}", count, state_name(state)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace backendgen
