// layer_norm and its gradients: rows of neighbours.

#include <array>
#include <optional>
#include <tuple>

#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "fallback.h"
#include "kernels.h"
#include "reduce.h"
#include "rows.h"

namespace ocl {

namespace {

at::Tensor dense(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

/// Whether the parameters have the input's dtype or float32, as PyTorch demands.
bool fits(const at::Tensor& input, const at::Tensor& parameter) {
  return !parameter.defined() || parameter.scalar_type() == input.scalar_type() ||
         parameter.scalar_type() == at::kFloat;
}

/// The gradients of the factors and of the summands, into those of both that are defined.
void columns(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
             const at::Tensor& rstd, std::int64_t count, std::int64_t n, const at::Tensor& weights,
             const at::Tensor& biases) {
  constexpr std::int64_t kRows = 64;  // for one part
  const std::int64_t parts = (count + kRows - 1) / kRows;
  const auto options = grad.options().dtype(at::kFloat);
  const at::Tensor sums = at::empty({parts, n}, options);
  const at::Tensor products = at::empty({parts, n}, options);
  const int device = grad.device().index();
  RowLaunch launch("layer_norm_backward", device, "norms", "column_sums", 1,
                   {{"NUMBER", at::kFloat}, {"IN", input}, {"GRAD", grad}});
  launch.value(count).value(n).value(parts);
  launch.output(sums).output(products).tensor(grad).tensor(input).tensor(mean).tensor(rstd);
  const std::int64_t width = device_at(device).is_cpu ? 128 : 1;  // `BLOCK` in kernels/norms.cl
  launch.run((n + width - 1) / width * parts, kRows * width);
  const std::array<std::int64_t, 1> first = {0};
  if (weights.defined()) reduce(kSum, products, first, at::kFloat, weights.view(n));
  if (biases.defined()) reduce(kSum, sums, first, at::kFloat, biases.view(n));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& input,
                                                          at::IntArrayRef shape,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          double eps) {
  const at::Tensor w = dense(weight);
  const at::Tensor b = dense(bias);
  const auto [count, n] = at::native::_check_layer_norm_inputs(input, shape, w, b);
  if (input.numel() == 0 || !is_floating(input.scalar_type()) || !fits(input, w) ||
      !fits(input, b)) {
    return Fallback<decltype(layer_norm)>::call("aten::native_layer_norm", "", input, shape, weight,
                                                bias, eps);
  }
  const at::Tensor in = input.contiguous();
  const at::Tensor out = at::empty(in.sizes(), in.options());
  c10::DimVector outer(in.sizes().begin(), in.sizes().end());
  std::fill(outer.end() - static_cast<std::ptrdiff_t>(shape.size()), outer.end(), 1);
  const at::Tensor mean = at::empty(outer, in.options().dtype(at::kFloat));
  const at::Tensor rstd = at::empty(outer, mean.options());
  RowLaunch launch("layer_norm", in.device().index(), "norms", "layer", n,
                   {{"NUMBER", at::kFloat}, {"IN", in}, {"OUT", out}, {"WEIGHT", w}, {"BIAS", b}});
  launch.value(count).value(n).value(static_cast<float>(eps));
  launch.output(out).output(mean).output(rstd).tensor(in).tensor(w).tensor(b);
  launch.run(count);
  return {out, mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, at::IntArrayRef shape,
    const at::Tensor& mean, const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, std::array<bool, 3> output_mask) {
  const at::Tensor w = dense(weight);
  const at::Tensor b = dense(bias);
  const auto [count, n] = at::native::_check_layer_norm_inputs(input, shape, w, b);
  if (input.numel() == 0 || !is_floating(input.scalar_type()) || mean.scalar_type() != at::kFloat) {
    return Fallback<decltype(layer_norm_backward)>::call("aten::native_layer_norm_backward", "",
                                                         grad_out, input, shape, mean, rstd, weight,
                                                         bias, output_mask);
  }
  const at::Tensor in = input.contiguous();
  const at::Tensor grad = grad_out.contiguous();
  const at::Tensor means = mean.contiguous();
  const at::Tensor rstds = rstd.contiguous();
  at::Tensor grad_input;
  if (output_mask[0]) {
    grad_input = at::empty(in.sizes(), in.options());
    RowLaunch launch(
        "layer_norm_backward", in.device().index(), "norms", "layer_backward", n,
        {{"NUMBER", at::kFloat}, {"IN", in}, {"OUT", grad_input}, {"WEIGHT", w}, {"GRAD", grad}});
    launch.value(count).value(n);
    launch.output(grad_input).tensor(grad).tensor(in).tensor(means).tensor(rstds).tensor(w);
    launch.run(count);
  }
  at::Tensor grad_weight;
  at::Tensor grad_bias;
  const auto contiguous = at::MemoryFormat::Contiguous;
  if (output_mask[1] && w.defined()) {
    grad_weight = at::empty_like(w, w.options().memory_format(contiguous));
  }
  if (output_mask[2] && b.defined()) {
    grad_bias = at::empty_like(b, b.options().memory_format(contiguous));
  }
  if (grad_weight.defined() || grad_bias.defined()) {
    columns(grad, in, means, rstds, count, n, grad_weight, grad_bias);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace ocl
