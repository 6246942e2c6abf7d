// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>

#include <backendkit/recurrent.h>
#include <backendkit/registrar.h>

namespace backendkit {

/// Operators that PyTorch hands to a backend whole, and that have no kernel on the CPU to fall back
/// to. They are computed there all the same, by the operator that the CPU has instead. So are
/// losses whose kernel on the CPU warns of the output that PyTorch makes for a device.
class HostOperators {
 public:
  static at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                                const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                                at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                at::IntArrayRef output_padding, std::int64_t groups) {
    std::optional<at::Tensor> host_bias;
    if (bias.has_value() && bias->defined()) host_bias = bias->cpu();
    return at::convolution(input.cpu(), weight.cpu(), host_bias, stride, padding, dilation,
                           transposed, output_padding, groups)
        .to(input.device());
  }

  static std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
      const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
      at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
      at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> output_mask) {
    // The size of the bias, which the CPU's operator asks for, is that of the output's channels.
    const std::vector<std::int64_t> bias_size = {grad_output.size(1)};
    const auto [grad_input, grad_weight, grad_bias] = at::convolution_backward(
        grad_output.cpu(), input.cpu(), weight.cpu(), bias_size, stride, padding, dilation,
        transposed, output_padding, groups, output_mask);
    const auto there = [&](const at::Tensor& grad) {
      return grad.defined() ? grad.to(input.device()) : grad;
    };
    return {there(grad_input), there(grad_weight), there(grad_bias)};
  }

  /// Draws from the device's generator, through `bernoulli_`; the CPU's own kernel would draw from
  /// the CPU's.
  static std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double probability,
                                                    std::optional<bool> train) {
    at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
    if (!train.value_or(true)) return {input.clone(), mask.fill_(true)};
    if (probability == 1) return {input.mul(0), mask.fill_(false)};
    mask.bernoulli_(1 - probability);
    return {input.mul(mask).mul_(1 / (1 - probability)), mask};
  }

  static at::Tensor mse_loss(const at::Tensor& self, const at::Tensor& target,
                             std::int64_t reduction) {
    check_one_device(self, target);
    return at::mse_loss(self.cpu(), target.cpu(), reduction).to(self.device());
  }

  static at::Tensor smooth_l1_loss(const at::Tensor& self, const at::Tensor& target,
                                   std::int64_t reduction, double beta) {
    check_one_device(self, target);
    return at::smooth_l1_loss(self.cpu(), target.cpu(), reduction, beta).to(self.device());
  }

  static void register_all(torch::Library& aten) {
    RecurrentCells::register_all(aten);
    // PyTorch computes these by the vendor's `out` kernel where there is one.
    if (!has_kernel("mse_loss.out")) register_unless_own(aten, "mse_loss", &mse_loss);
    if (!has_kernel("smooth_l1_loss.out")) {
      register_unless_own(aten, "smooth_l1_loss", &smooth_l1_loss);
    }
    register_unless_own(aten, "convolution_overrideable", &convolution);
    register_unless_own(aten, "convolution_backward_overrideable", &convolution_backward);
    register_unless_own(aten, "native_dropout", &dropout);
  }

 private:
  static void check_one_device(const at::Tensor& one, const at::Tensor& two) {
    TORCH_CHECK(one.device() == two.device(),
                "Expected all tensors to be on the same device, but "
                "found at least two devices, ",
                one.device(), " and ", two.device(), "!");
  }
};

}  // namespace backendkit
