// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace backendkit {

/// Whether a kernel of [operators.kernels] serves an operator, such as "add.out". The generated
/// has_kernel.cpp defines the function.
bool has_kernel(std::string_view op);

}  // namespace backendkit
