// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>

#include <backendkit/fallback/attention.h>
#include <backendkit/fallback/recurrent.h>
#include <backendkit/kernel/registrar.h>
#include <backendkit/library.h>
#include <backendkit/torch_version.h>

namespace backendkit {

/// aten::convolution_overrideable, on CPU tensors.
inline at::Tensor host_convolution(const at::Tensor& input, const at::Tensor& weight,
                                   const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                                   at::IntArrayRef padding, at::IntArrayRef dilation,
                                   bool transposed, at::IntArrayRef output_padding,
                                   std::int64_t groups) {
  return at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                         groups);
}

/// aten::convolution_backward_overrideable, on CPU tensors.
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> host_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> output_mask) {
  // The CPU's operator needs the size of the bias, which is the number of output channels.
  const std::vector<std::int64_t> bias_size = {grad_output.size(1)};
  return at::convolution_backward(grad_output, input, weight, bias_size, stride, padding, dilation,
                                  transposed, output_padding, groups, output_mask);
}

/// aten::native_dropout on the device: calls `bernoulli_`, which draws from the device's generator.
/// The CPU's own kernel would draw from the CPU's.
inline std::tuple<at::Tensor, at::Tensor> device_dropout(const at::Tensor& input,
                                                         double probability,
                                                         std::optional<bool> train) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (!train.value_or(true)) return {input.clone(), mask.fill_(true)};
  if (probability == 1) return {input.mul(0), mask.fill_(false)};
  mask.bernoulli_(1 - probability);
  return {input.mul(mask).mul_(1 / (1 - probability)), mask};
}

/// aten::conj_physical_ on the device, computed by `conj_physical.out`. PyTorch's own
/// implementation for all devices launches a kernel only on devices in its tree.
inline at::Tensor& device_conj_physical_(at::Tensor& self) {
  return self.is_complex() ? at::conj_physical_out(self, self) : self;
}

/// Operators that PyTorch passes to a backend whole and for which the CPU has no kernel: the
/// fallback calls these functions instead, with CPU tensors as arguments and results.
template <class Runtime>
class HostOperators {
 public:
  /// The function for an operator; null if the CPU has a kernel.
  static const c10::KernelFunction* find(const c10::OperatorHandle& op) {
    const auto found = all().find(op.operator_name());
    return found == all().end() ? nullptr : &found->second.kernel;
  }

  /// Registers `boxed_fallback` for each of these operators without a vendor's kernel.
  /// Otherwise PyTorch's own implementation, an error, would take precedence over the general
  /// fallback.
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* boxed_fallback>
  static void register_all(torch::Library& aten) {
    for (const auto& [name, entry] : all()) {
      register_boxed_unless_own<boxed_fallback>(aten, entry.local);
    }
    // The output that PyTorch creates for these losses on a device has a shape about which the CPU
    // warns. The vendor's `out` kernel, if any, computes them.
    if (!has_kernel("mse_loss.out")) register_boxed_unless_own<boxed_fallback>(aten, "mse_loss");
    if (!has_kernel("smooth_l1_loss.out")) {
      register_boxed_unless_own<boxed_fallback>(aten, "smooth_l1_loss");
    }
    // PyTorch's own implementations for all devices launch kernels only on devices in its tree.
    for (const char* window : {"kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"}) {
      register_boxed_unless_own<boxed_fallback>(aten, window);
    }
    register_unless_own(aten, "conj_physical_", &device_conj_physical_);
    for (const char* check : checks()) register_boxed_unless_own<boxed_fallback>(aten, check);
    register_attention_choice(aten);
  }

  /// For the key AutogradPrivateUse1: composite operators have nothing there once they have a
  /// kernel.
  static void register_no_gradients(torch::Library& aten) {
    for (const char* check : checks()) aten.impl(check, torch::CppFunction::makeFallthrough());
  }

  /// The same key for all operators: a release that has nothing there, up to 2.9, would reject
  /// operators that are not PyTorch's and have no gradient. This is not registered late: PyTorch's
  /// fake tensors have the key in a process that never has a tensor of the device.
  static void register_gradients_of_others() {
    register_fallback(c10::DispatchKey::AutogradPrivateUse1, torch::CppFunction::makeFallthrough());
  }

  /// Registers `boxed_fallback` for the operators with which a program may reach such a key before
  /// it has a tensor of the device, because they are told the device and the layout.
  /// `register_layouts` registers the rest. tests/device/test_late_registration.py asks PyTorch for
  /// the operators.
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* boxed_fallback>
  static void register_factories(torch::Library& aten, c10::DispatchKey key) {
    std::vector<const char*> factories = {"_cudnn_init_dropout_state",
                                          "_efficientzerotensor",
                                          "_empty_affine_quantized",
                                          "_empty_per_channel_affine_quantized",
                                          "_make_dep_token",
                                          "_sparse_coo_tensor_with_dims",
                                          "_sparse_coo_tensor_with_dims_and_tensors",
                                          "empty.memory_format",
                                          "empty_quantized",
                                          "empty_strided",
                                          "from_file",
                                          "tril_indices",
                                          "triu_indices"};
    if (key == c10::DispatchKey::NestedTensorPrivateUse1) factories = {"_to_copy"};
    for (const char* factory : factories) {
      if (!has_kernel_for(factory, key)) {
        aten.impl(factory, torch::CppFunction::makeFromBoxedFunction<boxed_fallback>());
      }
    }
  }

  /// Registers `boxed_fallback` for the tensors that are not dense: sparse, compressed, quantized
  /// and nested ones. That is a fallback for all operators, and for those that PyTorch would else
  /// compute for the device as if the tensor were strided, because it makes them of others; the
  /// CPU's tensors of the layout have kernels for these.
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* boxed_fallback>
  static void register_layouts() {
    using c10::BackendComponent;
    using c10::DispatchKey;
    struct Layout {
      DispatchKey on_cpu;
      DispatchKey here;
      torch::Library* aten;
    };
    const auto fallback = [] {
      return torch::CppFunction::makeFromBoxedFunction<boxed_fallback>();
    };
    std::vector<Layout> layouts;
    for (const DispatchKey layout : {DispatchKey::Sparse, DispatchKey::SparseCsr,
                                     DispatchKey::Quantized, DispatchKey::NestedTensor}) {
      const DispatchKey here =
          c10::toRuntimePerBackendFunctionalityKey(layout, BackendComponent::PrivateUse1Bit);
      register_fallback(here, fallback());
      layouts.push_back({c10::toRuntimePerBackendFunctionalityKey(layout, BackendComponent::CPUBit),
                         here,
                         register_for_good(torch::Library::IMPL, "aten", here, __FILE__, __LINE__,
                                           [](torch::Library&) {})});
    }
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (!name.name.starts_with("aten::")) continue;
      const std::optional<c10::OperatorHandle> op = dispatcher.findOp(name);
      if (!op.has_value() || !is_made_of_others(*op)) continue;
      for (const Layout& layout : layouts) {
        if (!op->hasKernelForDispatchKey(layout.on_cpu)) continue;
        if (op->hasKernelForDispatchKey(layout.here) || layout.aten == nullptr) continue;
        layout.aten->impl(c10::toString(name).c_str(), fallback());
      }
    }
  }

 private:
  /// One of the functions, with its name in a library for "aten".
  struct Entry {
    const char* local;
    c10::KernelFunction kernel;
  };
  using Table = std::unordered_map<c10::OperatorName, Entry>;

  static bool has_kernel_for(const char* op, c10::DispatchKey key) {
    const std::string_view name = op;
    const std::size_t dot = std::min(name.find('.'), name.size());
    const auto found = c10::Dispatcher::singleton().findOp(
        {"aten::" + std::string(name.substr(0, dot)),
         std::string(name.substr(std::min(dot + 1, name.size())))});
    return found.has_value() && found->hasKernelForDispatchKey(key);
  }

  static bool is_made_of_others(const c10::OperatorHandle& op) {
    using c10::DispatchKey;
    return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
           op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
           op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
  }

  /// PyTorch's checks of a sparse tensor's parts, for releases that reject devices other than their
  /// own; `torch.load` calls them.
  static std::vector<const char*> checks() {
    if (kChecksAnySparse) return {};
    return {"_validate_sparse_coo_tensor_args", "_validate_sparse_compressed_tensor_args"};
  }

  template <auto* function>
  static void add(Table& table, const char* local) {
    table.emplace(c10::OperatorName(std::string("aten::") + local, ""),
                  Entry{local, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function)});
  }

  static const Table& all() {
    static const Table* const table = [] {
      auto* const made = new Table;
      add<&host_convolution>(*made, "convolution_overrideable");
      add<&host_convolution_backward>(*made, "convolution_backward_overrideable");
      add<&RecurrentCells::lstm>(*made, "_thnn_fused_lstm_cell");
      add<&RecurrentCells::lstm_backward>(*made, "_thnn_fused_lstm_cell_backward_impl");
      add<&RecurrentCells::gru>(*made, "_thnn_fused_gru_cell");
      add<&RecurrentCells::gru_backward>(*made, "_thnn_fused_gru_cell_backward");
      add<&Attention<Runtime>::forward>(*made, "_scaled_dot_product_fused_attention_overrideable");
      add<&Attention<Runtime>::backward>(
          *made, "_scaled_dot_product_fused_attention_overrideable_backward");
      return made;
    }();
    return *table;
  }
};

}  // namespace backendkit
