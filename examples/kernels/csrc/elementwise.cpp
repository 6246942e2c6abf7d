// Operators that compute each element of the result from the elements at the same place. PyTorch's
// meta functions have checked the call and made the result before a kernel runs.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include <ATen/ops/empty_like.h>

#include "dtypes.h"
#include "elements.h"
#include "kernels.h"

namespace foo {

namespace {

constexpr float kSqrtHalf = 0.70710678118654752440f;
constexpr float kInverseSqrtTwoPi = 0.39894228040143267794f;
constexpr float kSqrtTwoOverPi = 0.79788456080286535588f;
constexpr float kCubic = 0.044715f;

/// result = function(self). Without a type of its own the result is one of floating point, and
/// float32 is the only one that this device computes.
template <class T = float, class Function>
void map(const at::Tensor& self, const at::Tensor& result, const Function& function) {
  const auto in = read<T>(self, result.sizes());
  const auto out = write<T>(result);
  const std::int64_t count = result.numel();
  for (std::int64_t i = 0; i < count; ++i) out[i] = function(in[i]);
}

/// result = function(self, other), both of type `T`.
template <class T = float, class Result = T, class Function>
void zip(const at::Tensor& self, const at::Tensor& other, const at::Tensor& result,
         const Function& function) {
  const auto left = read<T>(self, result.sizes());
  const auto right = read<T>(other, result.sizes());
  const auto out = write<Result>(result);
  const std::int64_t count = result.numel();
  for (std::int64_t i = 0; i < count; ++i) out[i] = function(left[i], right[i]);
}

/// The same in whatever dtype the two have in common.
template <class Function>
void zip_any(const char* op, const at::Tensor& self, const at::Tensor& other,
             const at::Tensor& result, const Function& function) {
  for_dtype(common_dtype(self, other), op, [&](auto zero) {
    using T = decltype(zero);
    zip<T>(self, other, result, [&](T a, T b) { return static_cast<T>(function(a, b)); });
  });
}

/// A comparison: the result is bool whatever is compared.
template <class Function>
void compare(const char* op, const at::Tensor& self, const at::Tensor& other,
             const at::Tensor& result, const Function& function) {
  for_dtype(common_dtype(self, other), op,
            [&](auto zero) { zip<decltype(zero), bool>(self, other, result, function); });
}

}  // namespace

void add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
         const at::Tensor& out) {
  for_dtype(common_dtype(self, other), "add", [&](auto zero) {
    using T = decltype(zero);
    const T factor = alpha.to<T>();
    zip<T>(self, other, out, [factor](T a, T b) { return static_cast<T>(a + factor * b); });
  });
}

void sub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
         const at::Tensor& out) {
  for_dtype(common_dtype(self, other), "sub", [&](auto zero) {
    using T = decltype(zero);
    const T factor = alpha.to<T>();
    zip<T>(self, other, out, [factor](T a, T b) { return static_cast<T>(a - factor * b); });
  });
}

void mul(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  zip_any("mul", self, other, out, [](auto a, auto b) { return a * b; });
}

void div(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  zip(self, other, out, [](float a, float b) { return a / b; });
}

// Each way round, a NaN stays one.

void maximum(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  zip_any("maximum", self, other, out, [](auto a, auto b) { return b > a || b != b ? b : a; });
}

void minimum(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  zip_any("minimum", self, other, out, [](auto a, auto b) { return b < a || b != b ? b : a; });
}

void clamp(const at::Tensor& self, at::OptionalScalarRef min, at::OptionalScalarRef max,
           const at::Tensor& out) {
  for_dtype(out.scalar_type(), "clamp", [&](auto zero) {
    using T = decltype(zero);
    const bool has_low = min.has_value(), has_high = max.has_value();
    const T low = has_low ? min.get().to<T>() : T(), high = has_high ? max.get().to<T>() : T();
    map<T>(self, out, [&](T value) {
      if (has_low && (value < low || low != low)) value = low;
      if (has_high && (value > high || high != high)) value = high;
      return value;
    });
  });
}

void eq(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("eq", self, other, out, [](auto a, auto b) { return a == b; });
}

void ne(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("ne", self, other, out, [](auto a, auto b) { return a != b; });
}

void lt(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("lt", self, other, out, [](auto a, auto b) { return a < b; });
}

void le(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("le", self, other, out, [](auto a, auto b) { return a <= b; });
}

void gt(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("gt", self, other, out, [](auto a, auto b) { return a > b; });
}

void ge(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compare("ge", self, other, out, [](auto a, auto b) { return a >= b; });
}

void bitwise_and(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  for_dtype(common_dtype(self, other), "bitwise_and", [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_floating_point_v<T>) {
      zip<T>(self, other, out, [](T a, T b) { return static_cast<T>(a & b); });
    }
  });
}

void neg(const at::Tensor& self, const at::Tensor& out) {
  for_dtype(out.scalar_type(), "neg", [&](auto zero) {
    using T = decltype(zero);
    map<T>(self, out, [](T value) { return static_cast<T>(-value); });
  });
}

void exp(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::exp(value); });
}

void log(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::log(value); });
}

void sqrt(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::sqrt(value); });
}

void rsqrt(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return 1 / std::sqrt(value); });
}

void sin(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::sin(value); });
}

void cos(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::cos(value); });
}

void tanh(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return std::tanh(value); });
}

void sigmoid(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return 1 / (1 + std::exp(-value)); });
}

void silu(const at::Tensor& self, const at::Tensor& out) {
  map(self, out, [](float value) { return value / (1 + std::exp(-value)); });
}

void gelu(const at::Tensor& self, c10::string_view approximate, const at::Tensor& out) {
  if (approximate == "tanh") {
    map(self, out, [](float x) {
      return 0.5f * x * (1 + std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x)));
    });
  } else {
    map(self, out, [](float x) { return 0.5f * x * (1 + std::erf(x * kSqrtHalf)); });
  }
}

void pow(const at::Tensor& self, const at::Scalar& exponent, const at::Tensor& out) {
  const float power = exponent.to<float>();
  // Not std::pow, which makes infinity of the root of -infinity.
  if (power == 0.5f) return sqrt(self, out);
  if (power == -0.5f) return rsqrt(self, out);
  map(self, out, [power](float value) { return std::pow(value, power); });
}

void tanh_backward(const at::Tensor& grad_output, const at::Tensor& output,
                   const at::Tensor& grad_input) {
  zip(grad_output, output, grad_input, [](float grad, float y) { return grad * (1 - y * y); });
}

void sigmoid_backward(const at::Tensor& grad_output, const at::Tensor& output,
                      const at::Tensor& grad_input) {
  zip(grad_output, output, grad_input, [](float grad, float y) { return grad * (1 - y) * y; });
}

void threshold_backward(const at::Tensor& grad_output, const at::Tensor& self,
                        const at::Scalar& threshold, const at::Tensor& grad_input) {
  const float limit = threshold.to<float>();
  zip(grad_output, self, grad_input,
      [limit](float grad, float value) { return value <= limit ? 0 : grad; });
}

void gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                   c10::string_view approximate, const at::Tensor& grad_input) {
  if (approximate == "tanh") {
    zip(grad_output, self, grad_input, [](float grad, float x) {
      const float t = std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x));
      const float slope = kSqrtTwoOverPi * (1 + 3 * kCubic * x * x);
      return grad * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
    });
  } else {
    zip(grad_output, self, grad_input, [](float grad, float x) {
      const float density = kInverseSqrtTwoPi * std::exp(-0.5f * x * x);
      return grad * (0.5f * (1 + std::erf(x * kSqrtHalf)) + x * density);
    });
  }
}

// Operators without a structured form make their results themselves.

at::Tensor relu(const at::Tensor& self) {
  const at::Tensor result = at::empty_like(self);
  for_dtype(self.scalar_type(), "relu", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto out = write<T>(result);
    const std::int64_t count = self.numel();
    for (std::int64_t i = 0; i < count; ++i) out[i] = in[i] < T(0) ? T(0) : T(in[i]);
  });
  return result;
}

at::Tensor abs(const at::Tensor& self) {
  const at::Tensor result = at::empty_like(self);
  for_dtype(self.scalar_type(), "abs", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto out = write<T>(result);
    const std::int64_t count = self.numel();
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(std::abs(in[i]));
  });
  return result;
}

}  // namespace foo
