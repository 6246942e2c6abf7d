// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace backendkit {

/// Runs an operator as if the device had no kernel for it: BackendKit's own implementation if there
/// is one, otherwise what `fallback` in [operators] says. Takes the operator's arguments from the
/// stack and leaves its results there. The generated fallback.cpp defines the function.
void call_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace backendkit
