// Convolutions as products of matrices. The windows of an image are a matrix that never exists in
// memory: the kernel of the product reads them from the image.

#include "convolution.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "dtypes.h"
#include "fallback.h"
#include "kernels.h"
#include "launch.h"
#include "product.h"

namespace ocl {

namespace {

/// An image whose lines lie one after the other is also a matrix of channels and pixels.
bool has_pixels_in_a_row(const at::Tensor& image) {
  return image.stride(2) == image.size(3) * image.stride(3);
}

at::Tensor with_pixels_in_a_row(const at::Tensor& image) {
  return has_pixels_in_a_row(image) ? image : image.contiguous();
}

/// An image as a matrix with a row for each channel of a group.
Matrix pixels(const at::Tensor& image, std::int64_t groups) {
  const std::int64_t channels = image.size(1) / groups;
  return {image,
          {.batch = image.stride(0),
           .group = channels * image.stride(1),
           .row = image.stride(1),
           .column = image.stride(3)}};
}

/// The same of all windows.
Matrix windows(const at::Tensor& image, std::int64_t groups, const Window& window) {
  Matrix matrix = pixels(image, groups);
  matrix.window = &window;
  return matrix;
}

/// The weights, with a row for each channel of the result.
Matrix weights(const at::Tensor& weight, std::int64_t groups, std::int64_t rows) {
  const std::int64_t columns = weight.numel() / groups / std::max<std::int64_t>(rows, 1);
  return {weight, {.group = rows * columns, .row = columns, .column = 1}};
}

Window window_of(const Convolution& c, const at::Tensor& large, const at::Tensor& small,
                 const at::Tensor& weight) {
  return {.kernel_y = weight.size(2),
          .kernel_x = weight.size(3),
          .columns = small.size(3),
          .step_y = c.stride_y,
          .step_x = c.stride_x,
          .dilation_y = c.dilation_y,
          .dilation_x = c.dilation_x,
          .begin_y = -c.padding_y,
          .begin_x = -c.padding_x,
          .divisor_y = 1,
          .divisor_x = 1,
          .size_y = large.size(2),
          .size_x = large.size(3),
          .channel = large.stride(1),
          .stride_y = large.stride(2),
          .stride_x = large.stride(3)};
}

/// The elements of `small` that an element of `large` is a part of.
Window spread_window_of(const Convolution& c, const at::Tensor& large, const at::Tensor& small,
                        const at::Tensor& weight) {
  return {.kernel_y = weight.size(2),
          .kernel_x = weight.size(3),
          .columns = large.size(3),
          .step_y = 1,
          .step_x = 1,
          .dilation_y = -c.dilation_y,
          .dilation_x = -c.dilation_x,
          .begin_y = c.padding_y,
          .begin_x = c.padding_x,
          .divisor_y = c.stride_y,
          .divisor_x = c.stride_x,
          .size_y = small.size(2),
          .size_x = small.size(3),
          .channel = small.stride(1),
          .stride_y = small.stride(2),
          .stride_x = small.stride(3)};
}

/// Whether each window is one element: then an image is the matrix of its windows.
bool is_pointwise(const Convolution& c, const at::Tensor& weight) {
  return weight.size(2) == 1 && weight.size(3) == 1 && c.stride_y == 1 && c.stride_x == 1 &&
         c.padding_y == 0 && c.padding_x == 0;
}

/// out = weight * image + bias, where `out` and the image are those of a direction.
void convolve(const char* op, const Convolution& c, const at::Tensor& weight, std::int64_t columns,
              const at::Tensor& image, const Window& window, const at::Tensor& bias,
              const at::Tensor& out) {
  const std::int64_t rows = out.size(1) / c.groups;
  const Sizes sizes{.m = rows,
                    .n = out.size(2) * out.size(3),
                    .k = columns,
                    .batches = out.size(0),
                    .groups = c.groups};
  const bool pointwise = is_pointwise(c, weight);
  const at::Tensor in = pointwise ? with_pixels_in_a_row(image) : image;
  const Matrix factor = pointwise ? pixels(in, c.groups) : windows(in, c.groups, window);
  const Matrix added{bias, {.group = rows, .row = 1}};
  multiply(op, sizes, pixels(out, c.groups), weights(weight, c.groups, rows), factor,
           bias.defined() ? &added : nullptr, 1, 1);
}

}  // namespace

void fill_small(const Convolution& c, const at::Tensor& large, const at::Tensor& weight,
                const at::Tensor& bias, const at::Tensor& small) {
  if (Convolution::depthwise(weight)) {
    return fill_small_depthwise(c, large, weight, bias, small);
  }
  convolve("convolution", c, weight, weight.numel() / std::max<std::int64_t>(weight.size(0), 1),
           large, window_of(c, large, small, weight), bias, small);
}

void fill_large(const Convolution& c, const at::Tensor& small, const at::Tensor& weight,
                const at::Tensor& bias, const at::Tensor& large) {
  if (Convolution::depthwise(weight)) {
    return fill_large_depthwise(c, small, weight, bias, large);
  }
  const std::int64_t kernel = weight.size(2) * weight.size(3);
  const std::int64_t channels = weight.size(0) / c.groups;  // of a group of `small`
  const at::Tensor turned =
      weight.reshape({c.groups, channels, weight.size(1), kernel})
          .transpose(1, 2)
          .contiguous()
          .view({c.groups * weight.size(1), channels, weight.size(2), weight.size(3)});
  convolve("convolution_backward", c, turned, channels * kernel, small,
           spread_window_of(c, large, small, weight), bias, large);
}

void fill_weight(const Convolution& c, const at::Tensor& large, const at::Tensor& small,
                 const at::Tensor& weight) {
  if (Convolution::depthwise(weight)) return fill_weight_depthwise(c, large, small, weight);
  const Sizes sizes{.m = weight.size(1) * weight.size(2) * weight.size(3),
                    .n = weight.size(0) / c.groups,
                    .k = small.size(2) * small.size(3),
                    .groups = c.groups,
                    .sums = small.size(0)};
  const Window window = window_of(c, large, small, weight);
  Matrix left = windows(large, c.groups, window);
  const at::Tensor image = with_pixels_in_a_row(small);
  Matrix right = pixels(image, c.groups);
  std::swap(right.strides.row, right.strides.column);
  for (Strides* const one : {&left.strides, &right.strides}) {
    one->sum = std::exchange(one->batch, 0);
  }
  const Strides out{.group = sizes.m * sizes.n, .row = 1, .column = sizes.m};
  multiply("convolution_backward", sizes, {weight, out}, left, right);
}

namespace {

bool is_taken(const at::Tensor& input) {
  return input.dim() == 4 && is_floating(input.scalar_type());
}

void check_dtypes(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "expected scalar type ",
              input.scalar_type(), " but found ", weight.scalar_type());
  TORCH_CHECK(!bias.defined() || bias.scalar_type() == input.scalar_type(), "Input type (",
              input.dtype(), ") and bias type (", bias.dtype(), ") should be the same");
}

Convolution made(at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                 std::int64_t groups) {
  return {stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1], groups};
}

std::int64_t size_after(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding, std::int64_t dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

std::int64_t size_before(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation, std::int64_t more) {
  return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + more;
}

/// The options of all results: they are channels_last if the input or the weight is.
at::TensorOptions options_for(const at::Tensor& input, const at::Tensor& weight) {
  const auto format = input.suggest_memory_format();
  const bool decided = format == at::MemoryFormat::ChannelsLast;
  return input.options().memory_format(decided ? format : weight.suggest_memory_format());
}

}  // namespace

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, std::int64_t groups) {
  if (!is_taken(input)) {
    return Fallback<decltype(convolution)>::call("aten::convolution_overrideable", "", input,
                                                 weight, bias, stride, padding, dilation,
                                                 transposed, output_padding, groups);
  }
  const Convolution all = made(stride, padding, dilation, groups);
  const at::Tensor dense = weight.contiguous();
  const at::Tensor added = bias.has_value() && bias->defined() ? bias->contiguous() : at::Tensor();
  check_dtypes(input, weight, added);
  std::array<std::int64_t, 4> sizes = {input.size(0),
                                       transposed ? groups * weight.size(1) : weight.size(0)};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = input.size(i + 2), kernel = weight.size(i + 2);
    sizes[i + 2] = transposed ? size_before(size, kernel, stride[i], padding[i], dilation[i],
                                            output_padding[i])
                              : size_after(size, kernel, stride[i], padding[i], dilation[i]);
  }
  at::Tensor out = at::empty(sizes, options_for(input, weight));
  (transposed ? fill_large : fill_small)(all, input, dense, added, out);
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> output_mask) {
  if (!is_taken(input)) {
    return Fallback<decltype(convolution_backward)>::call(
        "aten::convolution_backward_overrideable", "", grad_output, input, weight, stride, padding,
        dilation, transposed, output_padding, groups, output_mask);
  }
  check_dtypes(input, weight, at::Tensor());
  check_dtypes(grad_output, weight, at::Tensor());
  const Convolution all = made(stride, padding, dilation, groups);
  const at::TensorOptions options = options_for(input, weight);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = at::empty(input.sizes(), options);
    (transposed ? fill_small : fill_large)(all, grad_output, weight.contiguous(), at::Tensor(),
                                           grad_input);
  }
  if (output_mask[1]) {
    const at::Tensor dense = at::empty(weight.sizes(), weight.options());
    fill_weight(all, transposed ? grad_output : input, transposed ? input : grad_output, dense);
    grad_weight = dense.contiguous(*options.memory_format_opt());
  }
  if (output_mask[2]) grad_bias = grad_output.sum({0, 2, 3});
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace ocl
