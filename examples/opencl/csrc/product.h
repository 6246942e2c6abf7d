#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace ocl {

/// How far apart elements are in memory, for each index of a product.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t group = 0;  ///< a part of a batch
  std::int64_t sum = 0;    ///< products that are added up
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// The windows of a convolution as a matrix; kernels/matmul.cl says what its elements are.
struct Window {
  std::int64_t kernel_y, kernel_x;
  std::int64_t columns;  ///< how many windows are side by side
  std::int64_t step_y, step_x, dilation_y, dilation_x, begin_y, begin_x, divisor_y, divisor_x;
  std::int64_t size_y, size_x;               ///< of the image
  std::int64_t channel, stride_y, stride_x;  ///< its strides
};

/// A matrix in a tensor: rows and columns, or an image of whose windows they are made.
struct Matrix {
  const at::Tensor& tensor;
  Strides strides;
  const Window* window = nullptr;
};

/// The sizes of a product of matrices: `m` x `k` times `k` x `n`.
struct Sizes {
  std::int64_t m, n, k;
  std::int64_t batches = 1, groups = 1;
  std::int64_t sums = 1;  ///< products that are added up in each result
};

/// out = alpha * a b + beta * added, without `added` if that is null. `a` and `b` have one dtype,
/// `out` and `added` have one; at most one factor has windows. `added` may be in the place of
/// `out`, element for element. Sums are computed in float32, or in the integer's dtype.
void multiply(const char* op, const Sizes& sizes, const Matrix& out, const Matrix& a,
              const Matrix& b, const Matrix* added = nullptr, const at::Scalar& alpha = 1,
              const at::Scalar& beta = 0);

}  // namespace ocl
