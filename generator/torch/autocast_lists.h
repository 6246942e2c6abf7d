// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "torch/install.h"

namespace backendgen {

/// How autocast treats an operator, by PyTorch's own names of the policies.
enum class CastPolicy {
  kLowerPrecisionFp,  // floating tensors are cast to autocast's dtype
  kFp32,              // ... to float32
  kFp32SetOptDtype,   // the result is float32, unless the call asks for a dtype
  kPromote,           // floating tensors are cast to the widest dtype among them
};
inline constexpr std::array kCastPolicies = {CastPolicy::kLowerPrecisionFp, CastPolicy::kFp32,
                                             CastPolicy::kFp32SetOptDtype, CastPolicy::kPromote};

/// The name of a policy as a key of backend.toml: "lower_precision_fp".
const char* policy_key(CastPolicy policy);

/// The operators that PyTorch treats so in CUDA's autocast, in any release from 2.5 on:
/// ATen/autocast_mode.h. A release may lack some.
std::span<const std::string_view> usual_autocast_list(CastPolicy policy);

/// Whether a release that has such an operator treats it so: some came to the list later.
bool is_usual_in(std::string_view op, const TorchVersion& release);

}  // namespace backendgen
