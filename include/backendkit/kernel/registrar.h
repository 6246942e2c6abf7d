// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include <torch/library.h>

#include <backendkit/has_kernel.h>

namespace backendkit {

/// BackendKit's own implementations of operators for which the vendor has a kernel, by name without
/// the namespace: `call_fallback` calls them for dtypes that the kernel does not support.
inline std::unordered_map<std::string, c10::KernelFunction>& own_implementations() {
  using All = std::unordered_map<std::string, c10::KernelFunction>;
  static auto* const all = new All;  // threads may outlive static objects
  return *all;
}

/// Registers one of BackendKit's own implementations, a function on device tensors. If the vendor
/// has a kernel for the operator, the implementation is only kept for `call_fallback`.
template <class Function>
void register_unless_own(torch::Library& aten, const char* op, Function* function) {
  if (!has_kernel(op)) {
    aten.impl(op, function);
  } else {
    own_implementations().emplace(op,
                                  c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
  }
}

/// The same for a boxed function that is part of the fallback itself, so `call_fallback` does not
/// need to keep it.
template <auto* function>
void register_boxed_unless_own(torch::Library& aten, const char* op) {
  if (!has_kernel(op)) aten.impl(op, torch::CppFunction::makeFromBoxedFunction<function>());
}

}  // namespace backendkit
