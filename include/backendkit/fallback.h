// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <backendkit/call_fallback.h>
#include <backendkit/fallback/fallback_report.h>
#include <backendkit/fallback/host_operators.h>
#include <backendkit/fallback/host_random.h>
#include <backendkit/fallback/host_tensors.h>
#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// The kernels for operators for which the device has none.
template <class Runtime>
class Fallbacks {
 public:
  /// Runs the operator on the CPU and counts the call. The arguments are copied to the host exactly
  /// as they are, so that the operator computes, and fails, as it would on the CPU; random numbers
  /// come from the device's generator. Only what was written is copied back.
  static void cpu(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    Devices<Runtime>::check_not_forked();
    FallbackCount& count = FallbackCounts::of(op.operator_name());
    apply_fallback_mode(op, keys, count);
    at::RecordFunction range(at::RecordScope::FUNCTION);
    if (range.isActive()) range.before("backendkit::fallback " + c10::toString(op.operator_name()));
    TimedPart part;
    const Copied copied = run(op, keys, stack);
    count.time.add(part.end(), copied.bytes);
    count.copying.fetch_add(copied.nanoseconds, std::memory_order_relaxed);
  }

  /// Raises a NotImplementedError that says what to do.
  static void error(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack*) {
    refuse(op, keys, "set `fallback = \"cpu\"`", "");
  }

  /// Implements `backendkit::call_fallback`; `boxed_fallback` is one of the functions above.
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* boxed_fallback>
  static void call_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    const auto own = own_implementations().find(local_name(op));
    if (own != own_implementations().end() && op.schema().name().starts_with("aten::")) {
      own->second.callBoxed(op, keys, stack);
    } else {
      boxed_fallback(op, keys, stack);
    }
  }

 private:
  using Tensors = HostTensors<Runtime>;
  using Use = typename Tensors::Use;

  /// An operator's name without the namespace.
  static std::string local_name(const c10::OperatorHandle& op) {
    const std::string name = c10::toString(op.operator_name());
    return name.substr(name.find("::") + 2);
  }

  [[noreturn]] static void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                  const char* remedy, const char* why) {
    const bool dense = key_on_cpu(keys) == c10::DispatchKey::CPU;
    const std::string way = dense ? ": add `\"" + local_name(op) +
                                        "\" = \"FUNCTION\"` to [operators.kernels] in "
                                        "backend.toml, or "
                                  : ", and kernels support only dense tensors: to let the CPU "
                                    "compute it for sparse, quantized and nested tensors, ";
    TORCH_CHECK_NOT_IMPLEMENTED(false, "`", c10::toString(op.operator_name()),
                                "` has no kernel for device ",
                                c10::DeviceTypeName(kDeviceType, true), why, way, remedy);
    std::abort();
  }

  static void apply_fallback_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                  FallbackCount& count) {
    switch (fallback_mode()) {
      case FallbackMode::kQuiet:
        return;
      case FallbackMode::kError:
        refuse(
            op, keys, "unset BACKENDKIT_FALLBACK",
            ", and BACKENDKIT_FALLBACK=error in the environment forbids the fallback to the CPU");
      case FallbackMode::kWarn:
        if (!count.warned.exchange(true)) {
          TORCH_WARN("`", c10::toString(op.operator_name()), "` has no kernel for device ",
                     c10::DeviceTypeName(kDeviceType, true), ": it runs on the CPU");
        }
    }
  }

  /// The CPU's dispatch key that corresponds to the device's.
  static c10::DispatchKey key_on_cpu(c10::DispatchKeySet keys) {
    switch (keys.highestPriorityTypeId()) {
      case c10::DispatchKey::SparsePrivateUse1:
        return c10::DispatchKey::SparseCPU;
      case c10::DispatchKey::SparseCsrPrivateUse1:
        return c10::DispatchKey::SparseCsrCPU;
      case c10::DispatchKey::QuantizedPrivateUse1:
        return c10::DispatchKey::QuantizedCPU;
      case c10::DispatchKey::NestedTensorPrivateUse1:
        return c10::DispatchKey::NestedTensorCPU;
      default:
        return c10::DispatchKey::CPU;
    }
  }

  /// What an operator's copies were.
  struct Copied {
    std::int64_t bytes;
    std::int64_t nanoseconds;
  };

  static Copied run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t first = stack->size() - arguments.size();
    const std::optional<c10::Device> asked = device_asked_for(*stack, first);
    const c10::Device device = device_of(op, *stack, first, asked);
    const c10::Device target = asked.value_or(device);
    const bool stays = target.type() != kDeviceType;  // results, on the CPU or another device
    const c10::Device ours = stays ? device : target;
    const c10::DeviceGuard guard(ours);
    if (Captures::recording(ours.index(), Streams<Runtime>::current(ours.index()))) {
      Streams<Runtime>::cannot_record(
          ours.index(), c10::toString(op.operator_name()) + ", which the CPU computes");
    }
    Tensors tensors(ours);
    const std::vector<c10::IValue> before(stack->begin() + static_cast<std::ptrdiff_t>(first),
                                          stack->end());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      each_tensor(before[i],
                  [&](const at::Tensor& one) { tensors.note(one, use_of(op, arguments[i], one)); });
    }
    tensors.bring();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      (*stack)[first + i] = on_host(arguments[i], before[i], tensors);
    }
    if (asks_for_gradients(op)) {
      for (const c10::IValue& value : before) {
        each_tensor(value, [&](const at::Tensor& one) {
          if (one.requires_grad()) tensors.host(one).set_requires_grad(true);
        });
      }
    }
    const bool lend = !stays && Driver<Runtime>::host_accessible(ours.index());
    call(op, key_on_cpu(keys), stack, lend);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (is_written(op, arguments[i])) {
        each_tensor(before[i], [&](const at::Tensor& one) { tensors.take_back(one); });
      }
    }
    const std::size_t results = stack->size() - op.schema().returns().size();
    if (!stays) {
      for (std::size_t i = results; i < stack->size(); ++i) {
        each_tensor((*stack)[i], [&](const at::Tensor& one) { tensors.note_result(one); });
      }
    }
    tensors.send();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (is_written(op, arguments[i])) {
        each_tensor(before[i], [&](const at::Tensor& one) { tensors.finish(one); });
      }
    }
    for (std::size_t i = results; i < stack->size(); ++i) {
      (*stack)[i] =
          map((*stack)[i], [&](const at::Tensor& one) { return tensors.result(one, target); });
    }
    return {static_cast<std::int64_t>(tensors.copied()), tensors.copying()};
  }

  /// If `lend`, what the CPU allocates is in the memory of the current device.
  static void call(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack,
                   bool lend) {
    std::optional<typename LendingAllocator<Runtime>::Lending> lending;
    if (lend) lending.emplace();
    const c10::DispatchKeySet keys(key);
    if (const c10::KernelFunction* own = HostOperators<Runtime>::find(op)) {
      own->callBoxed(op, keys, stack);
    } else {
      op.redispatchBoxed(keys, stack);
    }
  }

  /// An argument as the CPU receives it. A generator must belong to the device; without one, the
  /// current device's default generator is used.
  static c10::IValue on_host(const c10::Argument& argument, const c10::IValue& value,
                             Tensors& tensors) {
    if (takes_generator(argument)) {
      std::optional<at::Generator> given;
      if (!value.isNone()) given = value.toGenerator();
      return host_generator(philox_state<Runtime>(given, kDrawnByHost));
    }
    if (value.isDevice() && value.toDevice().type() == kDeviceType) return c10::Device(c10::kCPU);
    return map(value, [&](const at::Tensor& one) { return tensors.host(one); });
  }

  /// Whether the CPU's kernel also computes what only a gradient needs if an argument requires one.
  static bool asks_for_gradients(const c10::OperatorHandle& op) {
    return op.schema().name() == "aten::_sparse_mm_reduce_impl";
  }

  static bool is_written(const c10::OperatorHandle& op, const c10::Argument& argument) {
    const c10::AliasInfo* const alias = argument.alias_info();
    if (alias == nullptr) return is_written_unsaid(op, argument);
    if (alias->isWrite()) return true;
    for (const c10::AliasInfo& inner : alias->containedTypes()) {
      if (inner.isWrite()) return true;
    }
    return false;
  }

  /// Arguments that operators write although their schemas do not say so: the running statistics of
  /// batch normalization and, in older releases, the noise of rrelu.
  static bool is_written_unsaid(const c10::OperatorHandle& op, const c10::Argument& argument) {
    const std::string& name = op.schema().name();
    if (argument.name() == "running_mean" || argument.name() == "running_var") {
      return name == "aten::native_batch_norm" || name == "aten::batch_norm_update_stats";
    }
    return argument.name() == "noise" && name.starts_with("aten::rrelu_with_noise") &&
           !name.ends_with("_backward");
  }

  /// The contents of an out= argument do not matter, nor do those of a nested tensor that is only
  /// viewed.
  static Use use_of(const c10::OperatorHandle& op, const c10::Argument& argument,
                    const at::Tensor& tensor) {
    const bool written = is_written(op, argument);
    const bool is_out = written && argument.is_out() && tensor.layout() == at::kStrided;
    const bool is_viewed = !written && argument.alias_info() != nullptr && Nested::is(tensor);
    return {!is_out && !is_viewed, written};
  }

  template <class Visit>
  static void each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& one : value.toTensorList()) visit(one);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& one : value.toOptionalTensorList()) {
        if (one.has_value() && one->defined()) visit(*one);
      }
    }
  }

  /// The same value with `change` applied to each tensor.
  template <class Change>
  static c10::IValue map(const c10::IValue& value, Change&& change) {
    if (value.isTensor()) return value.toTensor().defined() ? change(value.toTensor()) : value;
    if (value.isTensorList()) {
      c10::List<at::Tensor> all;
      for (const at::Tensor& one : value.toTensorList()) all.push_back(change(one));
      return all;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor>& one : value.toOptionalTensorList()) {
        all.push_back(one.has_value() && one->defined() ? std::optional(change(*one)) : one);
      }
      return all;
    }
    return value;
  }

  /// The device on which the operator is asked to create its results, if any.
  static std::optional<c10::Device> device_asked_for(const torch::jit::Stack& stack,
                                                     std::size_t first) {
    for (std::size_t i = first; i < stack.size(); ++i) {
      if (!stack[i].isDevice()) continue;
      const c10::Device one = stack[i].toDevice();
      if (one.type() != kDeviceType) return one;
      return c10::Device(kDeviceType, Devices<Runtime>::resolve(one));
    }
    return std::nullopt;
  }

  /// The device of an operator's tensors, or else the one on which it is asked to create tensors,
  /// or else the current one. Throws like PyTorch if tensors are on two devices, which the CPU
  /// would not notice, or if one is on the CPU; only a copy may mix devices. Throws also if a
  /// generator belongs to the device but everything else is on the CPU.
  static c10::Device device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                               std::size_t first, std::optional<c10::Device> asked) {
    std::optional<c10::Device> found;
    const bool is_copy = op.schema().name() == "aten::copy_";
    for (std::size_t i = first; i < stack.size(); ++i) {
      each_tensor(stack[i], [&](const at::Tensor& tensor) {
        const c10::Device one = tensor.device();
        if (one.is_cpu() || (is_copy && one.type() != kDeviceType)) return;
        TORCH_CHECK(is_copy || found.value_or(one) == one,
                    "Expected all tensors to be on the same device, but "
                    "found at least two devices, ",
                    *found, " and ", one, "!");
        if (!found.has_value()) found = one;
      });
    }
    if (found.has_value()) {
      if (!is_copy) check_none_is_of_the_host(op, stack, first, *found);
      return *found;
    }
    if (asked.has_value() && asked->type() == kDeviceType) return *asked;
    for (std::size_t i = first; i < stack.size(); ++i) {
      TORCH_CHECK(!stack[i].isGenerator() || stack[i].toGenerator().device().is_cpu(),
                  "Expected a 'cpu' device type for generator but found '",
                  c10::DeviceTypeName(kDeviceType, true), "'");
    }
    return c10::Device(kDeviceType, Devices<Runtime>::current());
  }

  /// Throws like PyTorch if a CPU tensor is among the device's tensors. Zero-dimensional CPU
  /// tensors are allowed unless they are written. Not checked: indices, as for PyTorch's own
  /// devices, operators that take CPU tensors by definition, and operators that are not PyTorch's.
  static void check_none_is_of_the_host(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack, std::size_t first,
                                        c10::Device device) {
    const std::string& name = op.schema().name();
    if (!name.starts_with("aten::") || takes_both(name)) return;
    for (std::size_t i = first; i < stack.size(); ++i) {
      if (stack[i].isOptionalTensorList()) continue;
      const c10::Argument& argument = op.schema().arguments()[i - first];
      each_tensor(stack[i], [&](const at::Tensor& one) {
        if (!one.is_cpu() || (one.dim() == 0 && !is_written(op, argument))) return;
        c10::impl::common_device_check_failure(device, one, name.c_str(), argument.name().c_str());
      });
    }
  }

  static bool takes_both(const std::string& name) {
    return name.starts_with("aten::_nested") || name == "aten::_ctc_loss" ||
           name == "aten::_ctc_loss_backward";
  }

  static bool takes_generator(const c10::Argument& argument) {
    const auto& type = argument.type();
    return type->kind() == c10::TypeKind::GeneratorType ||
           (type->kind() == c10::TypeKind::OptionalType &&
            type->castRaw<c10::OptionalType>()->getElementType()->kind() ==
                c10::TypeKind::GeneratorType);
  }
};

}  // namespace backendkit
