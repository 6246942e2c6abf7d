// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "description/description.h"
#include "torch/catalog.h"

namespace backendgen {

/// What happens when an operator is called on the device.
enum class OperatorState {
  kKernel,    // a kernel of the description computes it
  kFree,      // it is made of other operators: composite, derived, or structured through its out=
  kBuiltIn,   // BackendKit implements it
  kFallback,  // the CPU computes it
  kError,     // the CPU could, but the description has `fallback = "error"`
  kCannot,    // PyTorch has kernels only for other devices
};
inline constexpr std::size_t kOperatorStates = 6;

/// All of them, in the order in which they are counted.
std::array<OperatorState, kOperatorStates> operator_states();

/// "kernel", "free", "built-in", "fallback", "error", "cannot"
std::string_view state_name(OperatorState state);

/// An operator and what becomes of it.
struct OperatorStatus {
  const Operator* op;
  OperatorState state;
  std::string function = {};  // of kKernel: the C++ function, "foo::add"
  std::string through = {};   // the operator that it is computed by, if another: "add.out"

  /// Why, in a few words: "foo::add, from add.out", "composite", "only for CUDA"; often empty.
  std::string reason() const;
};

/// The states of all operators, in the catalog's order. Without a description no kernel exists and
/// the CPU is the fallback. Names of the description that the catalog lacks are passed over. The
/// catalog must outlive the result.
std::vector<OperatorStatus> judge_operators(const Catalog& catalog, const Description* description);

/// How many of these operators are in each state, by the state's number.
using StateCounts = std::array<std::size_t, kOperatorStates>;
StateCounts count_states(const std::vector<OperatorStatus>& operators);

/// "3 kernel, 12 free, 40 fallback": the states that occur.
std::string counts_text(const StateCounts& counts);

}  // namespace backendgen
