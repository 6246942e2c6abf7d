// Operators that compute each element of the result from the elements at the same place: a table of
// expressions. PyTorch's meta functions have checked the call and made the result.

#include <ATen/ops/empty_like.h>

#include "dtypes.h"
#include "elementwise.h"
#include "kernels.h"

namespace ocl {

namespace {

/// The dtype in which tensors are multiplied and divided. As on the CPU, numbers of 16 bits meet a
/// single number that is not rounded to theirs.
c10::ScalarType scaling_dtype(const at::Tensor& self, const at::Tensor& other) {
  const auto common = common_dtype(self, other);
  const bool keeps = other.numel() == 1 && self.scalar_type() == common;
  return keeps && is_floating(common) && other.scalar_type() != common ? at::kFloat : common;
}

}  // namespace

// Functions of one tensor whose result is a floating-point number.
#define OCL_UNARY(name, expression)                                               \
  void name(const at::Tensor& self, const at::Tensor& out) {                      \
    elementwise({#name, expression}, floating(self.scalar_type()), out, {&self}); \
  }
OCL_UNARY(cos, "cos(a)")
OCL_UNARY(erf, "erf(a)")
OCL_UNARY(exp, "exp(a)")
OCL_UNARY(expm1, "expm1(a)")
OCL_UNARY(log, "log(a)")
OCL_UNARY(log1p, "log1p(a)")
OCL_UNARY(log2, "log2(a)")
OCL_UNARY(reciprocal, "1 / a")
OCL_UNARY(rsqrt, "1 / sqrt(a)")
OCL_UNARY(sigmoid, "1 / (1 + exp(-a))")
OCL_UNARY(sin, "sin(a)")
OCL_UNARY(sqrt, "sqrt(a)")
OCL_UNARY(tanh, "tanh(a)")
OCL_UNARY(silu, "a / (1 + exp(-a))")
#undef OCL_UNARY

void neg(const at::Tensor& self, const at::Tensor& out) {
  elementwise({"neg", "-a"}, self.scalar_type(), out, {&self});
}

void sign(const at::Tensor& self, const at::Tensor& out) {
  elementwise({"sign", "(a > 0) - (a < 0)"}, self.scalar_type(), out, {&self});
}

void add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
         const at::Tensor& out) {
  const auto number = common_dtype(self, other);
  if (alpha.equal(1)) {
    elementwise({"add", "a + b"}, number, out, {&self, &other});
  } else {
    elementwise({"add", "a + x * b"}, number, out, {&self, &other}, alpha);
  }
}

void sub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
         const at::Tensor& out) {
  const auto number = common_dtype(self, other);
  if (alpha.equal(1)) {
    elementwise({"sub", "a - b"}, number, out, {&self, &other});
  } else {
    elementwise({"sub", "a - x * b"}, number, out, {&self, &other}, alpha);
  }
}

void mul(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"mul", "a * b"}, scaling_dtype(self, other), out, {&self, &other});
}

void div(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"div", "a / b"}, floating(scaling_dtype(self, other)), out, {&self, &other});
}

// NaN is the greatest and the least number for PyTorch.
void maximum(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"maximum", "a > b || a != a ? a : b"}, common_dtype(self, other), out,
              {&self, &other});
}

void minimum(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"minimum", "a < b || a != a ? a : b"}, common_dtype(self, other), out,
              {&self, &other});
}

#define OCL_COMPARE(name, operation)                                                            \
  void name(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {           \
    elementwise({#name, "a " operation " b"}, common_dtype(self, other), out, {&self, &other}); \
  }
OCL_COMPARE(eq, "==")
OCL_COMPARE(ne, "!=")
OCL_COMPARE(lt, "<")
OCL_COMPARE(le, "<=")
OCL_COMPARE(gt, ">")
OCL_COMPARE(ge, ">=")
#undef OCL_COMPARE

at::Tensor relu(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  elementwise({"relu", "a <= 0 ? 0 : a"}, self.scalar_type(), out, {&self});
  return out;
}

void threshold_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold,
                        const at::Tensor& out) {
  elementwise({"threshold_backward", "b <= x ? 0 : a"}, common_dtype(grad, self), out,
              {&grad, &self}, threshold);
}

void sigmoid_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& out) {
  elementwise({"sigmoid_backward", "a * (1 - b) * b"}, floating(common_dtype(grad, output)), out,
              {&grad, &output});
}

void tanh_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& out) {
  elementwise({"tanh_backward", "a * (1 - b * b)"}, floating(common_dtype(grad, output)), out,
              {&grad, &output});
}

void silu_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& out) {
  elementwise({"silu_backward", "a / (1 + exp(-b)) * (1 + b * (1 - 1 / (1 + exp(-b))))"},
              floating(common_dtype(grad, self)), out, {&grad, &self});
}

// The formula depends on the weight so that a weight of 1 gives the end exactly.
void lerp_scalar(const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight,
                 const at::Tensor& out) {
  elementwise({"lerp", "fabs(x) < 0.5f ? a + x * (b - a) : b - (b - a) * (1 - x)"},
              floating(self.scalar_type()), out, {&self, &end}, weight);
}

void lerp(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight,
          const at::Tensor& out) {
  elementwise({"lerp", "fabs(c) < 0.5f ? a + c * (b - a) : b - (b - a) * (1 - c)"},
              floating(common_dtype(self, end, weight)), out, {&self, &end, &weight});
}

at::Tensor& zero_(at::Tensor& self) {
  elementwise({"zero_", "x"}, self.scalar_type(), self, {}, 0);
  return self;
}

at::Tensor& fill_(at::Tensor& self, const at::Scalar& value) {
  // As on the CPU, what is too large for a single number of 16 bits makes it infinite.
  const auto type = self.scalar_type();
  const bool infinite = self.numel() == 1 && (type == at::kHalf || type == at::kBFloat16);
  elementwise({"fill_", "x"}, type, self, {},
              infinite ? wrapped(value, type) : written(value, type));
  return self;
}

at::Tensor& fill_tensor_(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  const at::Tensor number = number_for(self, value);
  elementwise({"fill_", "a"}, self.scalar_type(), self, {&number});
  return self;
}

void addcmul(const at::Tensor& self, const at::Tensor& one, const at::Tensor& two,
             const at::Scalar& value, const at::Tensor& out) {
  elementwise({"addcmul", "a + x * b * c"}, common_dtype(self, one, two), out, {&self, &one, &two},
              value);
}

void addcdiv(const at::Tensor& self, const at::Tensor& one, const at::Tensor& two,
             const at::Scalar& value, const at::Tensor& out) {
  elementwise({"addcdiv", "a + x * (b / c)"}, floating(common_dtype(self, one, two)), out,
              {&self, &one, &two}, value);
}

}  // namespace ocl
