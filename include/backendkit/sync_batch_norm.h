// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <torch/library.h>

#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// The operators with which torch.nn.SyncBatchNorm normalizes over several ranks, made of other
/// operators of the device: PyTorch has them for CUDA only. Statistics are float32 for inputs of 16
/// bits, as there. The second dimension is the channels.
class SyncBatchNorm {
 public:
  static void register_all(torch::Library& aten) {
    register_unless_own(aten, "batch_norm_stats", &stats);
    register_unless_own(aten, "batch_norm_gather_stats", &gather_stats);
    register_unless_own(aten, "batch_norm_gather_stats_with_counts", &gather_stats_with_counts);
    register_unless_own(aten, "batch_norm_elemt", &normalize);
    register_unless_own(aten, "batch_norm_elemt.out", &normalize_out);
    register_unless_own(aten, "batch_norm_backward_reduce", &backward_reduce);
    register_unless_own(aten, "batch_norm_backward_elemt", &backward);
  }

  using Optional = std::optional<at::Tensor>;
  using Two = std::tuple<at::Tensor, at::Tensor>;

  /// Mean and 1 / standard deviation of each channel.
  static Two stats(const at::Tensor& input, double eps) {
    const at::Tensor values = computed(input);
    const std::vector<std::int64_t> dims = others(input);
    const at::Tensor mean = values.mean(dims, true);
    const at::Tensor variance = (values - mean).square().mean(dims);
    return {mean.flatten(), (variance + eps).rsqrt()};
  }

  static Two gather_stats(const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
                          const Optional& running_mean, const Optional& running_var,
                          double momentum, double eps, std::int64_t count) {
    return gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps,
                                    at::full({mean.size(0)}, count, mean.options()));
  }

  /// The statistics of all ranks together, from those of each and the number of its values. Updates
  /// the running statistics if there are any.
  static Two gather_stats_with_counts(const at::Tensor&, const at::Tensor& mean,
                                      const at::Tensor& invstd, const Optional& running_mean,
                                      const Optional& running_var, double momentum, double eps,
                                      const at::Tensor& counts) {
    const at::Tensor weights = counts.to(mean.scalar_type()).unsqueeze(1);
    const at::Tensor total = weights.sum();
    const at::Tensor all_mean = (mean * weights).sum(0) / total;
    const at::Tensor variances = invstd.square().reciprocal() - eps;
    const at::Tensor variance = ((variances + (mean - all_mean).square()) * weights).sum(0) / total;
    update(running_mean, all_mean, momentum);
    update(running_var, variance * (total / (total - 1)), momentum);
    return {all_mean, (variance + eps).rsqrt()};
  }

  static at::Tensor normalize(const at::Tensor& input, const Optional& weight, const Optional& bias,
                              const at::Tensor& mean, const at::Tensor& invstd, double) {
    const at::Tensor scale = weight && weight->defined() ? invstd * *weight : invstd;
    at::Tensor result = (computed(input) - shaped(mean, input)) * shaped(scale, input);
    if (bias && bias->defined()) result = result + shaped(*bias, input);
    return at::empty_like(input).copy_(result);
  }

  static at::Tensor& normalize_out(const at::Tensor& input, const Optional& weight,
                                   const Optional& bias, const at::Tensor& mean,
                                   const at::Tensor& invstd, double eps, at::Tensor& out) {
    const at::Tensor result = normalize(input, weight, bias, mean, invstd, eps);
    return out.resize_(result.sizes()).copy_(result);
  }

  /// Sums of the gradient and of its product with the input's distance from the mean, and the
  /// gradients of weight and bias.
  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward_reduce(
      const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
      const at::Tensor& invstd, const Optional& weight, bool input_g, bool weight_g, bool bias_g) {
    const at::Tensor grad = computed(grad_out);
    const std::vector<std::int64_t> dims = others(input);
    const at::Tensor sum = grad.sum(dims);
    const at::Tensor products = (grad * (computed(input) - shaped(mean, input))).sum(dims);
    const auto of_weight = [&](bool wanted, const at::Tensor& gradient) {
      if (!wanted) return at::Tensor();
      return weight && weight->defined() ? gradient.to(weight->scalar_type()) : gradient;
    };
    return {input_g ? sum : at::Tensor(), input_g ? products : at::Tensor(),
            of_weight(weight_g, products * invstd), of_weight(bias_g, sum)};
  }

  /// The gradient of the input; the sums are those of all ranks.
  static at::Tensor backward(const at::Tensor& grad_out, const at::Tensor& input,
                             const at::Tensor& mean, const at::Tensor& invstd,
                             const Optional& weight, const at::Tensor& sum,
                             const at::Tensor& products, const at::Tensor& counts) {
    const at::Tensor total = counts.sum().to(mean.scalar_type());
    const at::Tensor scale = weight && weight->defined() ? invstd * *weight : invstd;
    const at::Tensor slope = products / total * invstd.square();
    const at::Tensor result = (computed(grad_out) - shaped(sum / total, input) -
                               (computed(input) - shaped(mean, input)) * shaped(slope, input)) *
                              shaped(scale, input);
    return at::empty_like(input).copy_(result);
  }

 private:
  static at::Tensor computed(const at::Tensor& tensor) {
    const bool is_small =
        tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
    return is_small ? tensor.to(at::kFloat) : tensor;
  }

  /// All dimensions but the channels'.
  static std::vector<std::int64_t> others(const at::Tensor& input) {
    std::vector<std::int64_t> dims;
    for (std::int64_t dim = 0; dim < input.dim(); ++dim) {
      if (dim != 1) dims.push_back(dim);
    }
    return dims;
  }

  /// Values of channels, in the shape that broadcasts to the input's.
  static at::Tensor shaped(const at::Tensor& channels, const at::Tensor& input) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
    sizes[1] = channels.numel();
    return channels.reshape(sizes);
  }

  static void update(const Optional& running, const at::Tensor& value, double momentum) {
    if (running && running->defined()) running->mul_(1 - momentum).add_(value, momentum);
  }
};

}  // namespace backendkit
