// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace backendgen {

/// The operators that include/backendkit computes on the device itself, unless a kernel of the
/// vendor replaces it: memory, views, copies. Sorted.
std::span<const std::string_view> builtin_operators();

/// The operators that include/backendkit computes as part of the fallback: the CPU has no kernel
/// for them, or not one that a device can use. Sorted.
std::span<const std::string_view> hosted_operators();

bool is_builtin(std::string_view op);
bool is_hosted(std::string_view op);

}  // namespace backendgen
