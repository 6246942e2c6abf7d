#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/Scalar.h>

#include "dtypes.h"

namespace ocl {

/// An operator on elements: the expression is OpenCL C, of the inputs `a`, `b`, `c` and the numbers
/// `x`, `y`. The texts live as long as the process.
struct Expression {
  const char* op;
  const char* text;
};

/// Writes the expression's value for each element of `out`. Inputs are broadcast to the shape of
/// `out`, and converted to the dtype `number`, as the value is; they may be numbers on the CPU. An
/// input may be `out` itself. Throws PyTorch's error if `x` or `y` is too large for `number`.
void elementwise(const Expression& expression, c10::ScalarType number, const at::Tensor& out,
                 std::initializer_list<const at::Tensor*> inputs, const at::Scalar& x = 0,
                 const at::Scalar& y = 0);

/// A number as a kernel computes with it where PyTorch has a tensor of the number: one that is too
/// large for the dtype is infinite, or its last bits. Numbers of `elementwise` must fit.
at::Scalar wrapped(const at::Scalar& value, c10::ScalarType type);

/// The same, rounded to the dtype's digits.
at::Scalar as_element(const at::Scalar& value, c10::ScalarType type);

/// A number that an operator writes into a tensor of a dtype. Throws PyTorch's error if it is too
/// large.
at::Scalar written(const at::Scalar& value, c10::ScalarType type);

/// A tensor of one number from which a kernel fills `self`, so that it is on the same device or on
/// the CPU. Converted to bool, 0.5 is true.
at::Tensor number_for(const at::Tensor& self, const at::Tensor& value);

/// The value of a number on the CPU. `item()` would be an operator of its own in every profile.
at::Scalar value_of(const at::Tensor& number);

/// A new tensor for a result of the inputs, of the shape and with the strides that PyTorch gives
/// it.
at::Tensor result_of(c10::ScalarType type, std::initializer_list<const at::Tensor*> inputs);

/// Gives the tensor for a result the shape, as PyTorch does: if that changes it, also the strides.
void resize_result(const at::Tensor& out, std::initializer_list<const at::Tensor*> inputs);

/// The dtype to which PyTorch promotes those of tensors.
template <class... Tensors>
c10::ScalarType common_dtype(const Tensors&... tensors) {
  at::native::ResultTypeState state{};
  ((state = at::native::update_result_type_state(tensors, state)), ...);
  return at::native::result_type(state);
}

/// The dtype of a function whose result is a floating-point number.
inline c10::ScalarType floating(c10::ScalarType type) {
  return is_floating(type) ? type : c10::ScalarType::Float;
}

}  // namespace ocl
