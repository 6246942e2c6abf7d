// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <backendkit/autocast_list.h>
#include <backendkit/device/device.h>
#include <backendkit/library.h>

// PyTorch exports these functions. Their header, ATen/autocast_mode.h, includes all of ATen, which
// would take longer to compile than the rest of the glue.
namespace at::autocast {
TORCH_API ScalarType get_autocast_dtype(DeviceType device_type);
TORCH_API void set_autocast_dtype(DeviceType device_type, ScalarType dtype);
TORCH_API Tensor cached_cast(ScalarType to_type, const Tensor& arg, DeviceType device_type);
}  // namespace at::autocast

namespace backendkit {

/// The kernel for the operators in the lists of [amp] inside `torch.autocast`: casts the arguments
/// according to the policy and calls the operator again without autocast. One kernel serves all
/// operators; the operator's schema tells it what the arguments are. The casts are PyTorch's, with
/// its cache of weights.
class AutocastKernel final : public c10::OperatorKernel {
 public:
  AutocastKernel(CastPolicy policy, const char* with_dtype)
      : policy_(policy), with_dtype_(with_dtype) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  torch::jit::Stack* stack) const {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
    const c10::FunctionSchema& schema = op.schema();
    const std::size_t first = stack->size() - schema.arguments().size();
    switch (policy_) {
      case CastPolicy::kLowerPrecisionFp:
        cast_all(*stack, first, at::autocast::get_autocast_dtype(kDeviceType));
        break;
      case CastPolicy::kFp32:
        cast_all(*stack, first, at::kFloat);
        break;
      case CastPolicy::kPromote:
        cast_all(*stack, first, widest(schema, *stack, first));
        break;
      case CastPolicy::kFp32SetOptDtype:
        if (!is_eligible((*stack)[first])) break;
        if (!with_dtype_.empty()) return call_with_dtype(schema, stack);
        set_dtype(schema, *stack, first);
        break;
    }
    op.callBoxed(stack);
  }

 private:
  /// Whether autocast may cast a value: a floating-point tensor on the device that is not float64.
  static bool is_eligible(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_privateuseone() && tensor.is_floating_point() &&
           tensor.scalar_type() != at::kDouble;
  }

  static bool is_eligible(const c10::IValue& value) {
    return value.isTensor() && is_eligible(value.toTensor());
  }

  static void cast_all(torch::jit::Stack& stack, std::size_t first, at::ScalarType dtype) {
    for (std::size_t i = first; i < stack.size(); ++i) {
      if (stack[i].isTensor()) {
        stack[i] = at::autocast::cached_cast(dtype, stack[i].toTensor(), kDeviceType);
      } else if (stack[i].isTensorList()) {
        c10::List<at::Tensor> cast;
        for (const at::Tensor& tensor : stack[i].toTensorVector()) {
          cast.push_back(at::autocast::cached_cast(dtype, tensor, kDeviceType));
        }
        stack[i] = std::move(cast);
      }
    }
  }

  /// float32 if one of the tensors is float32, otherwise autocast's dtype. As in PyTorch, an
  /// optional tensor is cast but not considered here.
  static at::ScalarType widest(const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                               std::size_t first) {
    const at::ScalarType lower = at::autocast::get_autocast_dtype(kDeviceType);
    at::ScalarType result = lower;
    const auto consider = [&](const at::Tensor& tensor) {
      if (!is_eligible(tensor) || result == at::kFloat) return;
      if (tensor.scalar_type() == at::kFloat) result = at::kFloat;
      TORCH_CHECK(result == at::kFloat || tensor.scalar_type() == lower,
                  "Unexpected floating ScalarType in at::autocast::prioritize: got ",
                  tensor.scalar_type(), ", but autocast uses ", lower);
    };
    for (std::size_t i = first; i < stack.size(); ++i) {
      const bool optional =
          schema.arguments()[i - first].type()->kind() == c10::TypeKind::OptionalType;
      if (stack[i].isTensor() && !optional) consider(stack[i].toTensor());
      if (!stack[i].isTensorList()) continue;
      for (const at::Tensor& tensor : stack[i].toTensorVector()) consider(tensor);
    }
    return result;
  }

  static void set_dtype(const c10::FunctionSchema& schema, torch::jit::Stack& stack,
                        std::size_t first) {
    const auto position = schema.argumentIndexWithName("dtype");
    TORCH_INTERNAL_ASSERT(position.has_value());
    c10::IValue& dtype = stack[first + static_cast<std::size_t>(*position)];
    if (dtype.isNone()) dtype = at::kFloat;
  }

  void call_with_dtype(const c10::FunctionSchema& schema, torch::jit::Stack* stack) const {
    stack->emplace_back(at::kFloat);
    c10::Dispatcher::singleton()
        .findSchemaOrThrow(schema.name().c_str(), with_dtype_.data())
        .callBoxed(stack);
  }

  CastPolicy policy_;
  std::string_view with_dtype_;  // a literal, so it is zero-terminated
};

/// The kernel for `binary_cross_entropy` inside `torch.autocast`: raises an error, as on CUDA,
/// because its gradient does not fit into float16.
inline void refuse_to_autocast(const c10::OperatorHandle&, torch::jit::Stack*) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
              "autocast.\nLeave out the sigmoid before them and use "
              "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, "
              "which are safe.");
}

/// Registers the lists of [amp] and makes its first dtype the default of `torch.autocast` on the
/// device. PyTorch keeps that default per thread; this sets it for the thread that loads the
/// backend. `library` is for `aten` and AutocastPrivateUse1.
inline void register_autocast(torch::Library& library) {
  const auto dtype = autocast_default();
  if (!dtype.has_value()) return;
  at::autocast::set_autocast_dtype(kDeviceType, *dtype);
  bool refuse = true;
  for (const AutocastOperator& op : autocast_operators()) {
    if (op.name == std::string_view("binary_cross_entropy")) refuse = false;
    library.impl(op.name, torch::CppFunction::makeFromBoxedFunctor(
                              std::make_unique<AutocastKernel>(op.policy, op.with_dtype)));
  }
  if (refuse) {
    library.impl("binary_cross_entropy",
                 torch::CppFunction::makeFromBoxedFunction<&refuse_to_autocast>());
  }
}

/// Makes autocast pass all other operators on. Fake tensors have the key too, in a process that
/// never has a tensor of the device; the Python module has this registered before autocast begins.
inline void register_no_autocast() {
  register_fallback(c10::DispatchKey::AutocastPrivateUse1, torch::CppFunction::makeFallthrough());
}

}  // namespace backendkit
