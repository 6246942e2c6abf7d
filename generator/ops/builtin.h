// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace backendgen {

/// The operators that include/backendkit computes on the device itself, unless a kernel of the
/// vendor replaces it: memory, views, copies. Sorted.
std::span<const std::string_view> builtin_operators();

/// The operators that include/backendkit computes as part of the fallback: the CPU has no kernel
/// for them, or not one that a device can use. Sorted.
std::span<const std::string_view> hosted_operators();

/// An operator that PyTorch makes of others on devices without a kernel of it, and that falls back
/// to the CPU nevertheless. With all of these kernels PyTorch's is left to it.
struct Composite {
  std::string_view op;
  std::array<std::string_view, 4> pieces = {};
};

/// The table of include/backendkit/composites.h, sorted.
std::span<const Composite> composite_operators();

/// Null where the operator is none of these.
const Composite* find_composite(std::string_view op);

bool is_builtin(std::string_view op);
bool is_hosted(std::string_view op);

}  // namespace backendgen
