#pragma once

#include <utility>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <backendkit/call_fallback.h>

namespace ocl {

/// Calls an operator as if the device had no kernel for it: what a kernel does with calls that it
/// does not take. The signature is the operator's own.
template <class Result, class... Arguments>
Result on_cpu(const char* op, const char* overload, Arguments... arguments) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op, overload);
  return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
      c10::BoxedKernel::makeFromFunction<&backendkit::call_fallback>(), handle,
      c10::DispatchKeySet(), std::forward<Arguments>(arguments)...);
}

}  // namespace ocl
