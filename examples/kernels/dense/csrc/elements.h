#pragma once

#include <ATen/core/Tensor.h>

namespace foo {

// How kernels reach the elements of a tensor: with `inputs = "dense"` it is a plain array.

/// The elements of a kernel's input, which has these sizes and the dtype `T` already.
template <class T>
const T* read(const at::Tensor& tensor, at::IntArrayRef) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

/// The elements of a kernel's result.
template <class T>
T* write(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

/// The dtype in which to compute an elementwise operator: that of all its inputs.
inline at::ScalarType common_dtype(const at::Tensor& self, const at::Tensor&) {
  return self.scalar_type();
}

}  // namespace foo
