// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace backendgen {

/// The operators that include/backendkit computes on the device itself, unless a kernel of the
/// vendor replaces it: memory, views, copies. Sorted.
std::span<const std::string_view> builtin_operators();

/// The operators that have no kernel on the CPU, or not one for a device, and that
/// include/backendkit brings there all the same, as part of the fallback. Sorted.
std::span<const std::string_view> hosted_operators();

bool is_builtin(std::string_view op);
bool is_hosted(std::string_view op);

}  // namespace backendgen
