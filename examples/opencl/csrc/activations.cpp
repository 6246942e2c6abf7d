// Activations and their gradients: a table of expressions.

#include <ATen/ops/scalar_tensor.h>

#include "dtypes.h"
#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"

namespace ocl {

namespace {

at::Tensor computed(const Expression& expression, const at::Tensor& a, const at::Tensor& b,
                    const at::Scalar& x, const at::Scalar& y) {
  at::Tensor out = result_of(a.scalar_type(), {&a, &b});
  elementwise(expression, at::kFloat, out, {&a, &b}, x, y);
  return out;
}

void check_approximate(c10::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh",
              "approximate argument must be either none or tanh.");
}

// 1 / sqrt(2), 1 / sqrt(2 * pi) and sqrt(2 / pi).
#define NORMAL_DISTRIBUTION(of) "0.5f * (1 + quotient_erf(" of " * 0.70710678118654752f))"
#define NORMAL_DENSITY(of) "exp(-0.5f * " of " * " of ") * 0.3989422804014327f"
#define CUBIC(of) "0.79788456080286536f * (" of " + 0.044715f * " of " * " of " * " of ")"

}  // namespace

void gelu(const at::Tensor& self, c10::string_view approximate, const at::Tensor& out) {
  check_approximate(approximate);
  if (approximate == "tanh") {
    elementwise({"gelu", "0.5f * a * (1 + tanh(" CUBIC("a") "))"}, at::kFloat, out, {&self});
  } else {
    elementwise({"gelu", "a * " NORMAL_DISTRIBUTION("a")}, at::kFloat, out, {&self});
  }
}

void gelu_backward(const at::Tensor& grad, const at::Tensor& self, c10::string_view approximate,
                   const at::Tensor& out) {
  check_approximate(approximate);
  if (approximate == "tanh") {
    elementwise({"gelu_backward", "a * 0.5f * (1 + tanh(" CUBIC("b") ") + b * slope_of_tanh(" CUBIC(
                                      "b") ") * "
                                           "0.79788456080286536f * (1 + 0.134145f * b * b))"},
                at::kFloat, out, {&grad, &self});
  } else {
    elementwise(
        {"gelu_backward", "a * (" NORMAL_DISTRIBUTION("b") " + b * " NORMAL_DENSITY("b") ")"},
        at::kFloat, out, {&grad, &self});
  }
}

void elu(const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale,
         const at::Scalar& input_scale, const at::Tensor& out) {
  const at::Tensor inner = at::scalar_tensor(input_scale);
  elementwise({"elu", "a > 0 ? a * x : expm1(a * b) * y"}, at::kFloat, out, {&self, &inner}, scale,
              alpha.toDouble() * scale.toDouble());
}

// y = negative * expm1(inner * x) has the derivative inner * (y + negative).
void elu_backward(const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale,
                  const at::Scalar& input_scale, bool is_result, const at::Tensor& self_or_result,
                  const at::Tensor& out) {
  const at::Tensor inner = at::scalar_tensor(input_scale);
  elementwise({"elu_backward", is_result ? "b <= 0 ? a * c * (b + y) : a * x"
                                         : "b <= 0 ? a * c * exp(b * c) * y : a * x"},
              at::kFloat, out, {&grad, &self_or_result, &inner}, scale,
              alpha.toDouble() * scale.toDouble());
}

void leaky_relu(const at::Tensor& self, const at::Scalar& slope, const at::Tensor& out) {
  elementwise({"leaky_relu", "a > 0 ? a : a * x"}, floating(self.scalar_type()), out, {&self},
              slope);
}

void leaky_relu_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope,
                         bool, const at::Tensor& out) {
  elementwise({"leaky_relu_backward", "b > 0 ? a : a * x"}, at::kFloat, out, {&grad, &self}, slope);
}

void hardsigmoid(const at::Tensor& self, const at::Tensor& out) {
  elementwise({"hardsigmoid", "(a + 3 < 0 ? 0 : a + 3 > 6 ? 6 : a + 3) / 6"}, at::kFloat, out,
              {&self});
}

void hardsigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& out) {
  elementwise({"hardsigmoid_backward", "b > -3 && b < 3 ? a / 6 : 0"}, at::kFloat, out,
              {&grad, &self});
}

at::Tensor hardswish(const at::Tensor& self) {
  return computed({"hardswish", "a * (a + 3 < 0 ? 0 : a + 3 > 6 ? 6 : a + 3) / 6"}, self, self, 0,
                  0);
}

at::Tensor hardswish_backward(const at::Tensor& grad, const at::Tensor& self) {
  return computed({"hardswish_backward", "b <= -3 ? 0 : b < 3 ? a * (b / 3 + 0.5f) : a"}, grad,
                  self, 0, 0);
}

at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  if (!(min.toDouble() <= max.toDouble())) {
    return Fallback<decltype(hardtanh)>::call("aten::hardtanh", "", self, min, max);
  }
  return computed({"hardtanh", "a < x ? x : a > y ? y : a"}, self, self, min, max);
}

at::Tensor hardtanh_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& min,
                             const at::Scalar& max) {
  return computed({"hardtanh_backward", "b <= x || b >= y ? 0 : a"}, grad, self, min, max);
}

}  // namespace ocl
