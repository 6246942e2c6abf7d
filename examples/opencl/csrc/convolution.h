#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace ocl {

/// What the three directions of a two-dimensional convolution have in common. `small` are the
/// images of which each element is made of a window of a `large` one; the weight has the shape
/// {channels of small, channels of large / groups, kernel_y, kernel_x}. A transposed convolution
/// makes large images of small ones.
struct Convolution {
  std::int64_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups;

  /// Whether every channel of `large` has a group of its own.
  static bool depthwise(const at::Tensor& weight) { return weight.size(1) == 1; }
};

/// Functions that fill `small`, `large` or `weight`, from the other two. A bias is added if it is
/// defined. All dtypes are one. Weights are contiguous; images have any strides.
void fill_small(const Convolution& convolution, const at::Tensor& large, const at::Tensor& weight,
                const at::Tensor& bias, const at::Tensor& small);
void fill_large(const Convolution& convolution, const at::Tensor& small, const at::Tensor& weight,
                const at::Tensor& bias, const at::Tensor& large);
void fill_weight(const Convolution& convolution, const at::Tensor& large, const at::Tensor& small,
                 const at::Tensor& weight);

/// The same for depthwise convolutions.
void fill_small_depthwise(const Convolution& convolution, const at::Tensor& large,
                          const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& small);
void fill_large_depthwise(const Convolution& convolution, const at::Tensor& small,
                          const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& large);
void fill_weight_depthwise(const Convolution& convolution, const at::Tensor& large,
                           const at::Tensor& small, const at::Tensor& weight);

}  // namespace ocl
