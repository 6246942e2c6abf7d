// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace backendkit {

/// Answers a call of an operator as if the device had no kernel for it: by an implementation of
/// BackendKit's own, else as `fallback` in [operators] says. Takes the operator's arguments from
/// the stack and leaves its results there. The generated fallback.cpp defines it.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace backendkit
