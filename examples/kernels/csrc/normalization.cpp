// Softmax and layer norm, forward and backward, in float32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty.h>

#include "elements.h"
#include "kernels.h"
#include "shapes.h"

namespace foo {

void softmax(const at::Tensor& self, std::int64_t dim, bool half_to_float, const at::Tensor& out) {
  TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported");
  const Along along(self, dim);
  const auto in = read<float>(self, self.sizes());
  const auto to = write<float>(out);
  along.lines([&](std::int64_t i, std::int64_t j) {
    float largest = -INFINITY;
    for (std::int64_t k = 0; k < along.size; ++k) {
      largest = std::max(largest, in[along.number(i, k, j)]);
    }
    double total = 0;
    for (std::int64_t k = 0; k < along.size; ++k) {
      total += std::exp(in[along.number(i, k, j)] - largest);
    }
    for (std::int64_t k = 0; k < along.size; ++k) {
      const std::int64_t number = along.number(i, k, j);
      to[number] = static_cast<float>(std::exp(in[number] - largest) / total);
    }
  });
}

void log_softmax(const at::Tensor& self, std::int64_t dim, bool half_to_float,
                 const at::Tensor& out) {
  TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported");
  const Along along(self, dim);
  const auto in = read<float>(self, self.sizes());
  const auto to = write<float>(out);
  along.lines([&](std::int64_t i, std::int64_t j) {
    float largest = -INFINITY;
    for (std::int64_t k = 0; k < along.size; ++k) {
      largest = std::max(largest, in[along.number(i, k, j)]);
    }
    double total = 0;
    for (std::int64_t k = 0; k < along.size; ++k) {
      total += std::exp(in[along.number(i, k, j)] - largest);
    }
    const auto shift = static_cast<float>(std::log(total));
    for (std::int64_t k = 0; k < along.size; ++k) {
      const std::int64_t number = along.number(i, k, j);
      to[number] = in[number] - largest - shift;
    }
  });
}

void softmax_backward(const at::Tensor& grad_output, const at::Tensor& output, std::int64_t dim,
                      at::ScalarType, const at::Tensor& grad_input) {
  const Along along(output, dim);
  const auto grad = read<float>(grad_output, output.sizes());
  const auto y = read<float>(output, output.sizes());
  const auto to = write<float>(grad_input);
  along.lines([&](std::int64_t i, std::int64_t j) {
    double total = 0;
    for (std::int64_t k = 0; k < along.size; ++k) {
      const std::int64_t number = along.number(i, k, j);
      total += grad[number] * y[number];
    }
    for (std::int64_t k = 0; k < along.size; ++k) {
      const std::int64_t number = along.number(i, k, j);
      to[number] = static_cast<float>((grad[number] - total) * y[number]);
    }
  });
}

void log_softmax_backward(const at::Tensor& grad_output, const at::Tensor& output, std::int64_t dim,
                          at::ScalarType, const at::Tensor& grad_input) {
  const Along along(output, dim);
  const auto grad = read<float>(grad_output, output.sizes());
  const auto y = read<float>(output, output.sizes());
  const auto to = write<float>(grad_input);
  along.lines([&](std::int64_t i, std::int64_t j) {
    double total = 0;
    for (std::int64_t k = 0; k < along.size; ++k) total += grad[along.number(i, k, j)];
    for (std::int64_t k = 0; k < along.size; ++k) {
      const std::int64_t number = along.number(i, k, j);
      to[number] = static_cast<float>(grad[number] - std::exp(y[number]) * total);
    }
  });
}

// Operators without a structured form check their arguments and make their results themselves.

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& input,
                                                          at::IntArrayRef normalized_shape,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          double eps) {
  const at::Tensor none;
  const at::Tensor& gamma = weight.has_value() ? *weight : none;
  const at::Tensor& beta = bias.has_value() ? *bias : none;
  const auto [rows, columns] =
      at::native::_check_layer_norm_inputs(input, normalized_shape, gamma, beta);
  std::vector<std::int64_t> outer(input.sizes().begin(), input.sizes().end());
  std::fill(outer.end() - static_cast<std::ptrdiff_t>(normalized_shape.size()), outer.end(), 1);
  const at::Tensor output = at::empty(input.sizes(), input.options());
  const at::Tensor means = at::empty(outer, input.options());
  const at::Tensor rstds = at::empty(outer, input.options());

  const auto in = read<float>(input, input.sizes());
  const auto scale = read<float>(gamma.defined() ? gamma : input, normalized_shape);
  const auto shift = read<float>(beta.defined() ? beta : input, normalized_shape);
  const auto to = write<float>(output);
  const auto to_mean = write<float>(means);
  const auto to_rstd = write<float>(rstds);
  for (std::int64_t i = 0; i < rows; ++i) {
    double total = 0, squares = 0;
    for (std::int64_t j = 0; j < columns; ++j) total += in[i * columns + j];
    const double mean = total / static_cast<double>(columns);
    for (std::int64_t j = 0; j < columns; ++j) {
      squares += (in[i * columns + j] - mean) * (in[i * columns + j] - mean);
    }
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + eps);
    for (std::int64_t j = 0; j < columns; ++j) {
      double value = (in[i * columns + j] - mean) * rstd;
      if (gamma.defined()) value *= scale[j];
      if (beta.defined()) value += shift[j];
      to[i * columns + j] = static_cast<float>(value);
    }
    to_mean[i] = static_cast<float>(mean);
    to_rstd[i] = static_cast<float>(rstd);
  }
  return {output, means, rstds};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, at::IntArrayRef normalized_shape,
    const at::Tensor& mean, const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, std::array<bool, 3> output_mask) {
  const at::Tensor none;
  const at::Tensor& gamma = weight.has_value() ? *weight : none;
  const at::Tensor& beta = bias.has_value() ? *bias : none;
  const auto [rows, columns] =
      at::native::_check_layer_norm_inputs(input, normalized_shape, gamma, beta);
  const auto grad = read<float>(grad_out, input.sizes());
  const auto in = read<float>(input, input.sizes());
  const auto means = read<float>(mean, mean.sizes());
  const auto rstds = read<float>(rstd, rstd.sizes());
  const auto scale = read<float>(gamma.defined() ? gamma : input, normalized_shape);

  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = at::empty(input.sizes(), input.options());
    const auto to = write<float>(grad_input);
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0, product = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t number = i * columns + j;
        const double slope = grad[number] * (gamma.defined() ? scale[j] : 1.f);
        sum += slope;
        product += slope * (in[number] - means[i]) * rstds[i];
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t number = i * columns + j;
        const double slope = grad[number] * (gamma.defined() ? scale[j] : 1.f);
        const double normal = (in[number] - means[i]) * rstds[i];
        const double rest = (sum + normal * product) / static_cast<double>(columns);
        to[number] = static_cast<float>((slope - rest) * rstds[i]);
      }
    }
  }
  if (output_mask[1]) grad_weight = at::empty(normalized_shape, input.options());
  if (output_mask[2]) grad_bias = at::empty(normalized_shape, input.options());
  for (std::int64_t j = 0; j < columns; ++j) {
    double product = 0, sum = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t number = i * columns + j;
      product += grad[number] * (in[number] - means[i]) * rstds[i];
      sum += grad[number];
    }
    if (output_mask[1]) write<float>(grad_weight)[j] = static_cast<float>(product);
    if (output_mask[2]) write<float>(grad_bias)[j] = static_cast<float>(sum);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace foo
