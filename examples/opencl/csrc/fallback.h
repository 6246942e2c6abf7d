#pragma once

#include <utility>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <backendkit/call_fallback.h>

namespace ocl {

/// What the CPU answers to a call of an operator: for what a kernel does not take. `Signature` is
/// that of the operator's function in kernels.h.
template <class Signature>
struct Fallback;

template <class Result, class... Arguments>
struct Fallback<Result(Arguments...)> {
  static Result call(const char* op, const char* overload, Arguments... arguments) {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op, overload);
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
        c10::BoxedKernel::makeFromFunction<&backendkit::call_fallback>(), handle,
        c10::DispatchKeySet(), std::forward<Arguments>(arguments)...);
  }
};

}  // namespace ocl
