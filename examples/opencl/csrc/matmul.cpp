// Products of matrices. PyTorch's meta functions have checked the shapes and made the result.

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include "dtypes.h"
#include "kernels.h"
#include "product.h"

namespace ocl {

namespace {

/// A matrix, or a batch of them, as it lies in memory: no transposed one is copied.
Matrix matrix(const at::Tensor& tensor) {
  const std::int64_t batch = tensor.dim() == 3 && tensor.size(0) > 1 ? tensor.stride(0) : 0;
  return {tensor, {.batch = batch, .row = tensor.stride(-2), .column = tensor.stride(-1)}};
}

/// out = alpha * left @ right + beta * added, where `added` can be expanded to the result.
void product(const char* op, const at::Tensor* added, const at::Tensor& left,
             const at::Tensor& right, const at::Scalar& beta, const at::Scalar& alpha,
             const at::Tensor& out) {
  // The meta functions leave these to the kernel.
  if (out.dim() == 3) {
    TORCH_CHECK(left.scalar_type() == right.scalar_type(), "expected scalar type ",
                left.scalar_type(), " but found ", right.scalar_type());
  } else {
    TORCH_CHECK(left.scalar_type() == right.scalar_type(),
                "expected m1 and m2 to have the same dtype, but got: ", left.dtype(),
                " != ", right.dtype());
  }
  TORCH_CHECK_NOT_IMPLEMENTED(left.scalar_type() != c10::ScalarType::Bool, '"', op,
                              "\" not implemented for 'Bool'");
  at::assert_no_internal_overlap(out);
  const Sizes sizes{.m = out.size(-2),
                    .n = out.size(-1),
                    .k = left.size(-1),
                    .batches = out.dim() == 3 ? out.size(0) : 1};
  // Where beta is 0, not even a NaN counts.
  if (added == nullptr || beta.equal(0)) {
    return multiply(op, sizes, matrix(out), matrix(left), matrix(right), nullptr, alpha);
  }
  TORCH_CHECK(added->scalar_type() == out.scalar_type(),
              "self and mat2 must have the same dtype, but got ", added->scalar_type(), " and ",
              right.scalar_type());
  at::Tensor expanded = added->expand(out.sizes());
  at::assert_no_partial_overlap(out, expanded);
  // A result is written while others still read what is added to them: another element of `out`
  // is read before.
  if (added->is_alias_of(out) && !added->is_same(out) &&
      at::get_overlap_status(out, expanded) != at::MemOverlapStatus::Full) {
    expanded = expanded.clone();
  }
  const Matrix more = matrix(expanded);
  multiply(op, sizes, matrix(out), matrix(left), matrix(right), &more, alpha, beta);
}

}  // namespace

void mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  product("mm", nullptr, self, mat2, 0, 1, out);
}

void bmm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  product("bmm", nullptr, self, mat2, 0, 1, out);
}

void addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
           const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  product("addmm", &self, mat1, mat2, beta, alpha, out);
}

void baddbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
             const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  product("baddbmm", &self, batch1, batch2, beta, alpha, out);
}

void addmv(const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec,
           const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  const at::Tensor added = self.dim() == 0 ? self : self.unsqueeze(1);
  product("addmv", &added, mat, vec.unsqueeze(1), beta, alpha, out.unsqueeze(1));
}

}  // namespace ocl
