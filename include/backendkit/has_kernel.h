// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace backendkit {

/// Whether [operators.kernels] of the description names an operator, such as "add.out". The
/// generated register_kernels.cpp defines the function.
bool has_kernel(std::string_view op);

}  // namespace backendkit
