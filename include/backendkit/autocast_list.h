// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include <c10/core/ScalarType.h>

namespace backendkit {

/// How autocast treats an operator, by PyTorch's own names of the policies; see docs/autocast.md.
enum class CastPolicy {
  kLowerPrecisionFp,
  kFp32,
  kFp32SetOptDtype,
  kPromote,
};

struct AutocastOperator {
  const char* name;  // "softmax.int"
  CastPolicy policy;
  /// The overload to call in its place with a dtype behind the arguments, for operators of
  /// kFp32SetOptDtype that take no dtype themselves: "ScalarOpt_dtype"; else empty.
  const char* with_dtype;
};

/// What [amp] of the description says. The generated autocast.cpp defines both.

/// The operators that autocast treats; every other one gets its arguments as they are.
std::span<const AutocastOperator> autocast_operators();

/// The dtype of `torch.autocast` on the device where a call names none; empty when the device has
/// no autocast.
std::optional<c10::ScalarType> autocast_default();

}  // namespace backendkit
