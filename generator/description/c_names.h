// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace backendgen {

/// Whether C, POSIX or glibc declares a global function, variable or type of this lower-case name,
/// so that no C++ namespace can have it. Every name that ends in `_t` counts: POSIX reserves them.
bool is_global_c_name(std::string_view name);

/// Whether a header of C, or one of PyTorch that the glue includes, defines a macro of this name,
/// so that no function, type or namespace can have it.
bool is_c_macro(std::string_view name);

}  // namespace backendgen
