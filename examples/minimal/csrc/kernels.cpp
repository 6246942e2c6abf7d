#include "kernels.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty_like.h>

// Two kernels. The simulated device's memory is the host's, so each is a plain loop; yours would
// start work on the device. All that these do not compute, such as a backward pass, runs on the
// CPU. Tensors are contiguous, since backend.toml says `inputs = "dense"`.

/// For the functional variant of an operator; `relu_` and `out=` follow from it.
at::Tensor foo::relu(const at::Tensor& self) {
  at::Tensor result = at::empty_like(self);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "relu", [&] {
    const scalar_t* from = self.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    const scalar_t zero(0);
    // This way round a NaN stays one.
    for (int64_t i = 0; i < self.numel(); ++i) to[i] = from[i] < zero ? zero : from[i];
  });
  return result;
}

/// For all variants of an operator that PyTorch has a meta function for: it has checked the shapes
/// and made `out`.
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
