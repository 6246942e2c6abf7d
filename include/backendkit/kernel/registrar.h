// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include <torch/library.h>

#include <backendkit/has_kernel.h>

namespace backendkit {

/// BackendKit's own implementations of operators that the vendor has a kernel for, by name without
/// the namespace: `fall_back` calls them where the kernel does not compute a dtype.
inline std::unordered_map<std::string, c10::KernelFunction>& own_implementations() {
  using All = std::unordered_map<std::string, c10::KernelFunction>;
  static auto* const all = new All;  // threads may outlive static objects
  return *all;
}

/// Registers one of BackendKit's own implementations, a function on tensors of the device. Where
/// the vendor has a kernel for the operator, it is only kept for `fall_back`.
template <class Function>
void register_unless_own(torch::Library& aten, const char* op, Function* function) {
  if (!has_kernel(op)) {
    aten.impl(op, function);
  } else {
    own_implementations().emplace(op,
                                  c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
  }
}

/// The same for a boxed function, which `fall_back` needs no record of: one that is part of the
/// fallback itself.
template <auto* function>
void register_boxed_unless_own(torch::Library& aten, const char* op) {
  if (!has_kernel(op)) aten.impl(op, torch::CppFunction::makeFromBoxedFunction<function>());
}

}  // namespace backendkit
