// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <backendkit/generator.h>

namespace backendkit {

/// What answers for an operator without a kernel of the device.
template <class Runtime>
class Fallbacks {
 public:
  /// Runs it on the CPU: tensors are copied there and results back. Random numbers come from the
  /// device's generator.
  static void cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t first = stack->size() - arguments.size();
    check_one_device(*stack, first);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!takes_generator(arguments[i])) continue;
      c10::IValue& value = (*stack)[first + i];
      value = value.isNone()
                  ? as_generator(default_generator<Runtime>(device_of(*stack, first))).cpu()
                  : as_generator(value.toGenerator()).cpu();
    }
    at::native::cpu_fallback(op, stack);
  }

  /// Raises NotImplementedError with what to do about it.
  static void error(const c10::OperatorHandle& op, torch::jit::Stack*) {
    const std::string name = c10::toString(op.operator_name());
    const std::string device = c10::DeviceTypeName(kDeviceType, true);
    const std::string local = name.substr(name.find("::") + 2);
    TORCH_CHECK_NOT_IMPLEMENTED(false, "`", name, "` has no kernel for device ", device,
                                ": name one in [operators.kernels] of backend.toml, \"", local,
                                "\" = \"FUNCTION\", or set `fallback = \"cpu\"`");
  }

 private:
  /// Throws, as PyTorch does, for tensors on two devices; the CPU would not see that they are.
  static void check_one_device(const torch::jit::Stack& stack, std::size_t first) {
    std::optional<c10::Device> device;
    for (std::size_t i = first; i < stack.size(); ++i) {
      if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
      const c10::Device one = stack[i].toTensor().device();
      if (one.type() != kDeviceType) continue;
      TORCH_CHECK(device.value_or(one) == one,
                  "Expected all tensors to be on the same device, but "
                  "found at least two devices, ",
                  *device, " and ", one, "!");
      device = one;
    }
  }

  static bool takes_generator(const c10::Argument& argument) {
    const auto& type = argument.type();
    return type->kind() == c10::TypeKind::GeneratorType ||
           (type->kind() == c10::TypeKind::OptionalType &&
            type->castRaw<c10::OptionalType>()->getElementType()->kind() ==
                c10::TypeKind::GeneratorType);
  }

  /// The device of the first tensor on one among an operator's arguments; the current one without.
  static c10::DeviceIndex device_of(const torch::jit::Stack& stack, std::size_t first) {
    for (std::size_t i = first; i < stack.size(); ++i) {
      if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
      const c10::Device device = stack[i].toTensor().device();
      if (device.type() == kDeviceType) return device.index();
    }
    return Devices<Runtime>::current();
  }

  static const Generator& as_generator(const at::Generator& generator) {
    const c10::DeviceType type = generator.device().type();
    TORCH_CHECK(type == kDeviceType, "Expected a '", c10::DeviceTypeName(kDeviceType, true),
                "' device type for generator but found '", c10::DeviceTypeName(type, true), "'");
    return *static_cast<Generator*>(generator.unsafeGetGeneratorImpl());
  }
};

}  // namespace backendkit
