// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>

#include <backendkit/kernel.h>

namespace backendkit {

namespace custom_detail {

template <Name name_space, Name op, class Signature, Signature* function>
struct Kernel;

template <Name name_space, Name op, class Result, class... Arguments,
          Result (*function)(Arguments...)>
struct Kernel<name_space, op, Result(Arguments...), function> {
  static Result call(Arguments... arguments) {
    kernel_detail::MaybeDevice device;
    static_cast<void>(((device = kernel_detail::device_in(arguments)) || ...));
    const c10::OptionalDeviceGuard guard(device);
    return timed_kernel(name_space.view(), op.view(), [&]() -> Result {
      return function(std::forward<Arguments>(arguments)...);
    });
  }
};

}  // namespace custom_detail

/// The function to register as the kernel of the custom operator `name_space::op`: calls `function`
/// with the device of its arguments as the current one.
template <Name name_space, Name op, class Signature, Signature* function>
constexpr Signature* custom_kernel() {
  return &custom_detail::Kernel<name_space, op, Signature, function>::call;
}

/// `function` itself, for the CPU or for meta functions; `Signature` selects one of several
/// overloads.
template <class Signature, Signature* function>
constexpr Signature* custom_function() {
  return function;
}

/// The Autograd kernel for an operator that writes to its arguments: calls the operator and then
/// tells autograd which tensors have changed, so that a gradient that needs their old values raises
/// an error. Such an operator cannot have a formula, so with gradients enabled a tensor that
/// requires one is an error.
inline void call_and_count_changes(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                   torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack->size() - arguments.size();
  std::vector<at::Tensor> written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::vector<at::Tensor> tensors;
    const c10::IValue& value = (*stack)[first + i];
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (value.isList()) {
      for (const c10::IValue& one : value.toListRef()) {
        if (one.isTensor()) tensors.push_back(one.toTensor());
      }
    }
    const c10::AliasInfo* alias = arguments[i].alias_info();
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined()) continue;
      TORCH_CHECK(!c10::GradMode::is_enabled() || !tensor.requires_grad(), "`", op.operator_name(),
                  "` writes to its arguments, so it has no gradient, but `", arguments[i].name(),
                  "` requires one: call it under torch.no_grad()");
      if (alias != nullptr && alias->isWrite()) written.push_back(tensor);
    }
  }
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  for (const at::Tensor& tensor : written) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace backendkit
