#include "kernels.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

// Two kernels. The simulated device's memory is the host's, so each is a plain loop; yours would
// start work on the device. All that these do not compute, such as a backward pass, runs on the
// CPU.

at::Tensor foo::relu(const at::Tensor& self) {
  const at::Tensor input = self.contiguous();
  at::Tensor result = at::empty_like(input);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "relu", [&] {
    const scalar_t* from = input.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    const scalar_t zero(0);
    // This way round a NaN stays one.
    for (int64_t i = 0; i < input.numel(); ++i) to[i] = from[i] < zero ? zero : from[i];
  });
  return result;
}

at::Tensor foo::mm(const at::Tensor& self, const at::Tensor& mat2) {
  TORCH_CHECK(self.dim() == 2 && mat2.dim() == 2, "mm: both arguments must be matrices");
  TORCH_CHECK(self.size(1) == mat2.size(0), "mm: cannot multiply ", self.sizes(), " and ",
              mat2.sizes());
  TORCH_CHECK(self.scalar_type() == mat2.scalar_type(), "mm: dtypes differ: ", self.scalar_type(),
              " and ", mat2.scalar_type());
  TORCH_CHECK(self.device() == mat2.device(), "mm: devices differ: ", self.device(), " and ",
              mat2.device());
  const at::Tensor left = self.contiguous();
  const at::Tensor right = mat2.contiguous();
  const int64_t rows = left.size(0), inner = left.size(1), columns = right.size(1);
  at::Tensor result = at::empty({rows, columns}, left.options());
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(at::kHalf, at::kBFloat16, left.scalar_type(), "mm", [&] {
    const scalar_t* a = left.const_data_ptr<scalar_t>();
    const scalar_t* b = right.const_data_ptr<scalar_t>();
    scalar_t* c = result.mutable_data_ptr<scalar_t>();
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
  return result;
}
