// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include <c10/core/ScalarType.h>

namespace backendkit {

/// How autocast treats an operator, with PyTorch's own names of the policies; see docs/autocast.md.
enum class CastPolicy {
  kLowerPrecisionFp,
  kFp32,
  kFp32SetOptDtype,
  kPromote,
};

struct AutocastOperator {
  const char* name;  // "softmax.int"
  CastPolicy policy;
  /// For operators of kFp32SetOptDtype that have no dtype argument: the overload to call instead,
  /// which takes a dtype after the arguments, such as "ScalarOpt_dtype"; otherwise empty.
  const char* with_dtype;
};

/// The settings of [amp]. The generated autocast.cpp defines both functions.

/// The operators that autocast treats; all others receive their arguments unchanged.
std::span<const AutocastOperator> autocast_operators();

/// The default dtype of `torch.autocast` on the device; empty if the device has no autocast.
std::optional<c10::ScalarType> autocast_default();

}  // namespace backendkit
