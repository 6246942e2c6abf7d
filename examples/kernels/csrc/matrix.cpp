// Products of matrices.

#include <cstdint>

#include <ATen/MemoryOverlap.h>

#include "dtypes.h"
#include "elements.h"
#include "kernels.h"

namespace foo {

namespace {

/// out = alpha * left @ right, plus beta * added where there is one; each with `batches` matrices.
/// What is added has the shape of the result.
void multiply(const char* op, const at::Tensor* added, const at::Tensor& left,
              const at::Tensor& right, const at::Scalar& beta, const at::Scalar& alpha,
              const at::Tensor& out) {
  // PyTorch's meta functions leave these two to the kernel.
  TORCH_CHECK(left.scalar_type() == right.scalar_type() && left.scalar_type() == out.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ", left.dtype(),
              " != ", right.dtype());
  at::assert_no_internal_overlap(out);
  const std::int64_t rows = left.size(-2), inner = left.size(-1), columns = right.size(-1);
  const std::int64_t batches = left.dim() == 3 ? left.size(0) : 1;
  for_dtype(out.scalar_type(), op, [&](auto zero) {
    using T = decltype(zero);
    using Total = typename Sum<T>::type;
    const T scale = alpha.to<T>(), share = beta.to<T>();
    // Where beta is 0, not even a NaN counts.
    const bool adds = added != nullptr && share != T(0);
    const auto a = read<T>(left, left.sizes());
    const auto b = read<T>(right, right.sizes());
    const auto c = read<T>(adds ? *added : out, out.sizes());
    const auto to = write<T>(out);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          Total total = 0;
          for (std::int64_t k = 0; k < inner; ++k) {
            total += Total(a[(batch * rows + i) * inner + k]) *
                     Total(b[(batch * inner + k) * columns + j]);
          }
          const std::int64_t place = (batch * rows + i) * columns + j;
          total *= scale;
          if (adds) total += Total(share) * Total(c[place]);
          to[place] = static_cast<T>(total);
        }
      }
    }
  });
}

}  // namespace

void mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  multiply("mm", nullptr, self, mat2, 0, 1, out);
}

void bmm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  multiply("bmm", nullptr, self, mat2, 0, 1, out);
}

// What is added need not have the shape of the result: addmm is not elementwise, so that is left to
// the kernel.

void addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
           const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  const at::Tensor added = self.expand(out.sizes()).contiguous();
  multiply("addmm", &added, mat1, mat2, beta, alpha, out);
}

void baddbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
             const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  const at::Tensor added = self.expand(out.sizes()).contiguous();
  multiply("baddbmm", &added, batch1, batch2, beta, alpha, out);
}

}  // namespace foo
