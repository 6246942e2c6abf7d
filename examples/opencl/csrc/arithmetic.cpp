// Arithmetic, comparisons with numbers, rounding, logic and choices: a table of expressions.

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/empty_like.h>

#include "dtypes.h"
#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"

namespace ocl {

namespace {

bool is_nan(const at::Scalar& value) {
  return value.isFloatingPoint() && std::isnan(value.toDouble());
}

void rounded(const Expression& expression, const at::Tensor& self, const at::Tensor& out) {
  const auto number = self.scalar_type();
  elementwise(is_floating(number) ? expression : Expression{"copy", "a"}, number, out, {&self});
}

at::Tensor& logical(const Expression& expression, const at::Tensor& self, const at::Tensor& other,
                    at::Tensor& out) {
  resize_result(out, {&self, &other});
  elementwise(expression, common_dtype(self, other), out, {&self, &other});
  return out;
}

/// Whether a kernel fills in `self`; the CPU's function raises PyTorch's errors, and warns. Throws
/// PyTorch's error if the mask is a part of `self`, which the CPU's function could not see.
bool fills(const at::Tensor& self, const at::Tensor& mask) {
  at::assert_no_partial_overlap(self, mask);
  return mask.scalar_type() == at::kBool && mask.device() == self.device() &&
         at::is_expandable_to(mask.sizes(), self.sizes()) &&
         at::has_internal_overlap(self) != at::MemOverlap::Yes;
}

}  // namespace

#define OCL_COMPARE_NUMBER(name, operation)                                                     \
  void name(const at::Tensor& self, const at::Scalar& other, const at::Tensor& out) {           \
    const auto number = common_dtype(self, at::native::wrapped_scalar_tensor(other));           \
    elementwise({#name, "a " operation " x"}, number, out, {&self}, as_element(other, number)); \
  }
OCL_COMPARE_NUMBER(eq_number, "==")
OCL_COMPARE_NUMBER(ne_number, "!=")
OCL_COMPARE_NUMBER(lt_number, "<")
OCL_COMPARE_NUMBER(le_number, "<=")
OCL_COMPARE_NUMBER(gt_number, ">")
OCL_COMPARE_NUMBER(ge_number, ">=")
#undef OCL_COMPARE_NUMBER

at::Tensor& abs(const at::Tensor& self, at::Tensor& out) {
  const auto number = self.scalar_type();
  if (number != out.scalar_type()) {
    return Fallback<decltype(abs)>::call("aten::abs", "out", self, out);
  }
  resize_result(out, {&self});
  elementwise({"abs", is_floating(number) ? "fabs(a)" : "a < 0 ? -a : a"}, number, out, {&self});
  return out;
}

#define OCL_ROUND(name, expression)                          \
  void name(const at::Tensor& self, const at::Tensor& out) { \
    rounded({#name, expression}, self, out);                 \
  }
OCL_ROUND(ceil, "ceil(a)")
OCL_ROUND(floor, "floor(a)")
OCL_ROUND(round, "rint(a)")
OCL_ROUND(trunc, "trunc(a)")
#undef OCL_ROUND

void pow_by_number(const at::Tensor& self, const at::Scalar& exponent, const at::Tensor& out) {
  const auto number = common_dtype(self, at::native::wrapped_scalar_tensor(exponent));
  const at::Scalar x = is_floating(number) ? as_element(exponent, number) : exponent;
  const auto as = [&](const char* text) { elementwise({"pow", text}, number, out, {&self}, x); };
  if (exponent.equal(2)) return as("a * a");
  if (exponent.equal(3)) return as("a * a * a");
  if (!is_floating(number)) return as("integer_power(a, x)");
  if (exponent.equal(0.5)) return as("sqrt(a)");
  if (exponent.equal(-0.5)) return as("1 / sqrt(a)");
  if (exponent.equal(-1)) return as("1 / a");
  as("pow(a, x)");
}

void pow(const at::Tensor& self, const at::Tensor& exponent, const at::Tensor& out) {
  const auto number = common_dtype(self, exponent);
  elementwise({"pow", is_floating(number) ? "pow(a, b)" : "integer_power(a, b)"}, number, out,
              {&self, &exponent});
}

void pow_of_number(const at::Scalar& self, const at::Tensor& exponent, const at::Tensor& out) {
  // PyTorch's meta function leaves these to the kernel.
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, exponent);
  const auto number = common_dtype(at::native::wrapped_scalar_tensor(self), exponent);
  elementwise({"pow", is_floating(number) ? "pow(x, a)" : "integer_power(x, a)"}, number, out,
              {&exponent}, as_element(self, number));
}

// A limit that is NaN makes every element NaN, and the upper limit counts more than the lower.
void clamp(const at::Tensor& self, at::OptionalScalarRef min, at::OptionalScalarRef max,
           const at::Tensor& out) {
  const auto number = out.scalar_type();
  if ((min.has_value() && is_nan(min.get())) || (max.has_value() && is_nan(max.get()))) {
    elementwise({"clamp", "x"}, number, out, {}, std::numeric_limits<double>::quiet_NaN());
  } else if (!max.has_value()) {
    elementwise({"clamp", "a < x ? x : a"}, number, out, {&self}, min.get());
  } else if (!min.has_value()) {
    elementwise({"clamp", "a > x ? x : a"}, number, out, {&self}, max.get());
  } else {
    elementwise({"clamp", "a > y || x > y ? y : a < x ? x : a"}, number, out, {&self}, min.get(),
                max.get());
  }
}

void clamp_min(const at::Tensor& self, const at::Scalar& min, const at::Tensor& out) {
  clamp(self, min, at::OptionalScalarRef(), out);
}

void clamp_max(const at::Tensor& self, const at::Scalar& max, const at::Tensor& out) {
  clamp(self, at::OptionalScalarRef(), max, out);
}

void clamp_min_tensor(const at::Tensor& self, const at::Tensor& min, const at::Tensor& out) {
  elementwise({"clamp_min", "a < b || b != b ? b : a"}, common_dtype(self, min), out,
              {&self, &min});
}

void clamp_max_tensor(const at::Tensor& self, const at::Tensor& max, const at::Tensor& out) {
  elementwise({"clamp_max", "a > b || b != b ? b : a"}, common_dtype(self, max), out,
              {&self, &max});
}

void clamp_tensors(const at::Tensor& self, at::OptionalTensorRef min, at::OptionalTensorRef max,
                   const at::Tensor& out) {
  if (!max.has_value()) return clamp_min_tensor(self, *min, out);
  if (!min.has_value()) return clamp_max_tensor(self, *max, out);
  constexpr const char* kText =
      "a != a ? a : b != b ? b : a > c || b > c || c != c ? c : a < b ? b : a";
  elementwise({"clamp", kText}, common_dtype(self, *min, *max), out, {&self, &*min, &*max});
}

at::Tensor& logical_and(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return logical({"logical_and", "a != 0 && b != 0"}, self, other, out);
}

at::Tensor& logical_or(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return logical({"logical_or", "a != 0 || b != 0"}, self, other, out);
}

at::Tensor& logical_not(const at::Tensor& self, at::Tensor& out) {
  resize_result(out, {&self});
  elementwise({"logical_not", "a == 0"}, self.scalar_type(), out, {&self});
  return out;
}

void bitwise_and(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"bitwise_and", "a & b"}, common_dtype(self, other), out, {&self, &other});
}

void bitwise_or(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"bitwise_or", "a | b"}, common_dtype(self, other), out, {&self, &other});
}

void bitwise_xor(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  elementwise({"bitwise_xor", "a ^ b"}, common_dtype(self, other), out, {&self, &other});
}

void bitwise_not(const at::Tensor& self, const at::Tensor& out) {
  const bool is_bool = self.scalar_type() == at::kBool;
  elementwise({"bitwise_not", is_bool ? "a == 0" : "~a"}, self.scalar_type(), out, {&self});
}

at::Tensor isnan(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self, self.options().dtype(at::kBool));
  elementwise({"isnan", "a != a"}, self.scalar_type(), out, {&self});
  return out;
}

void isneginf(const at::Tensor& self, const at::Tensor& out) {
  elementwise({"isneginf", "a == -INFINITY"}, self.scalar_type(), out, {&self});
}

void isposinf(const at::Tensor& self, const at::Tensor& out) {
  elementwise({"isposinf", "a == INFINITY"}, self.scalar_type(), out, {&self});
}

at::Tensor& masked_fill_(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  if (!fills(self, mask)) {
    return Fallback<decltype(masked_fill_)>::call("aten::masked_fill_", "Scalar", self, mask,
                                                  value);
  }
  elementwise({"masked_fill", "b != 0 ? x : a"}, self.scalar_type(), self, {&self, &mask},
              written(value, self.scalar_type()));
  return self;
}

at::Tensor& masked_fill_tensor_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  // On the CPU a number that is too large is an error. To look at one on the device would wait.
  if (value.is_cpu() && value.dim() == 0) return masked_fill_(self, mask, value_of(value));
  if (!fills(self, mask) || value.dim() != 0) {
    return Fallback<decltype(masked_fill_tensor_)>::call("aten::masked_fill_", "Tensor", self, mask,
                                                         value);
  }
  const at::Tensor number = number_for(self, value);
  elementwise({"masked_fill", "b != 0 ? c : a"}, self.scalar_type(), self, {&self, &mask, &number});
  return self;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  if (condition.scalar_type() != at::kBool) {
    return Fallback<decltype(where)>::call("aten::where", "self", condition, self, other);
  }
  const auto number = common_dtype(self, other);
  at::Tensor out = result_of(number, {&condition, &self, &other});
  elementwise({"where", "a != 0 ? b : c"}, number, out, {&condition, &self, &other});
  return out;
}

}  // namespace ocl
