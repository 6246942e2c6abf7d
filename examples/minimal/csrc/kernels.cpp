#include "kernels.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty_like.h>

// Two kernels. The simulated device's memory is host memory, so each is a plain loop; yours would
// start work on the device. Operators without a kernel, such as those of a backward pass, run on
// the CPU. Tensors are contiguous, because backend.toml says `inputs = "dense"`.

/// Implements the functional variant of an operator; it also serves `relu_` and `out=`.
at::Tensor foo::relu(const at::Tensor& self) {
  at::Tensor result = at::empty_like(self);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "relu", [&] {
    const scalar_t* from = self.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    const scalar_t zero(0);
    // Written this way so that NaN stays NaN.
    for (int64_t i = 0; i < self.numel(); ++i) to[i] = from[i] < zero ? zero : from[i];
  });
  return result;
}

/// Implements all variants of a structured operator: PyTorch's meta function has checked the shapes
/// and created `out`.
void foo::mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  const int64_t rows = self.size(0), inner = self.size(1), columns = mat2.size(1);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "mm", [&] {
    const scalar_t* a = self.const_data_ptr<scalar_t>();
    const scalar_t* b = mat2.const_data_ptr<scalar_t>();
    scalar_t* c = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        at::opmath_type<scalar_t> sum(0);
        for (int64_t k = 0; k < inner; ++k) {
          sum += at::opmath_type<scalar_t>(a[i * inner + k]) *
                 at::opmath_type<scalar_t>(b[k * columns + j]);
        }
        c[i * columns + j] = static_cast<scalar_t>(sum);
      }
    }
  });
}
