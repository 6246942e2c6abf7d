// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace backendgen {

/// The operators that include/backendkit implements itself for a device, unless a kernel of the
/// vendor replaces it: memory, views, copies, and what has no kernel on the CPU. Sorted.
std::span<const std::string_view> builtin_operators();

bool is_builtin(std::string_view op);

}  // namespace backendgen
