// SPDX-License-Identifier: Apache-2.0
#include "operator_states.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "builtin_operators.h"

namespace backendgen {

namespace {

struct Answer {
  const Kernel* kernel;
  std::string named;  // the operator that the description names
};

/// The operators that the kernels of a description answer, by name.
std::unordered_map<std::string, Answer> answered(const Catalog& catalog,
                                                 const Description& description) {
  std::unordered_map<std::string, Answer> answers;
  std::unordered_map<std::string_view, const Kernel*> structured;  // by the out= operator
  for (const Kernel& kernel : description.kernels) {
    const Operator* op = catalog.find(kernel.op.value);
    if (op == nullptr) continue;
    answers.insert_or_assign(kernel.op.value, Answer{&kernel, kernel.op.value});
    if (op->structured && op->delegate.empty()) structured.emplace(kernel.op.value, &kernel);
  }
  for (const Operator& op : catalog.operators()) {
    const auto found = structured.find(op.delegate);
    if (found == structured.end()) continue;
    answers.try_emplace(op.schema.name().text(), Answer{found->second, op.delegate});
  }
  return answers;
}

/// Whether a dispatch table has a kernel that works with tensors in the host's memory. MKL-DNN's
/// tensors and nested ones have no form on another device.
bool has_host_kernel(const Operator& op) {
  if (op.on_cpu) return true;
  std::string_view keys = op.dispatch;
  while (!keys.empty()) {
    const std::size_t comma = std::min(keys.find(", "), keys.size());
    const std::string_view key = keys.substr(0, comma);
    if (key == "SparseCPU" || key == "SparseCsrCPU" || key == "QuantizedCPU") return true;
    keys.remove_prefix(std::min(comma + 2, keys.size()));
  }
  return false;
}

/// Judges operators one by one; those that an operator is made of first.
class Judge {
 public:
  Judge(const Catalog& catalog, const Description* description)
      : catalog_(catalog),
        error_(description != nullptr && description->fallback == Fallback::kError) {
    if (description != nullptr) answers_ = answered(catalog, *description);
  }

  OperatorStatus judge(const Operator& op) const {
    const std::string name = op.schema.name().text();
    if (const auto found = answers_.find(name); found != answers_.end()) {
      const Answer& answer = found->second;
      return {&op, OperatorState::kKernel, answer.kernel->function.value,
              answer.named == name ? "" : answer.named};
    }
    if (is_builtin(name)) return {&op, OperatorState::kBuiltIn};
    if (!op.delegate.empty()) return through(op, op.delegate);
    if (op.derived) return through(op, op.base);
    if (op.composite_implicit || op.composite_explicit) return {&op, OperatorState::kFree};
    if (!has_host_kernel(op)) return {&op, OperatorState::kCannot};
    return {&op, error_ ? OperatorState::kError : OperatorState::kFallback};
  }

 private:
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
  std::unordered_map<std::string, Answer> answers_;
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
