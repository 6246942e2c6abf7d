// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <torch/library.h>

#include <backendkit/has_kernel.h>

namespace backendkit {

/// Registers one of BackendKit's own implementations, unless the vendor has a kernel for the
/// operator.
template <class Function>
void register_unless_own(torch::Library& aten, const char* op, Function&& function) {
  if (!has_kernel(op)) aten.impl(op, std::forward<Function>(function));
}

}  // namespace backendkit
