// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tuple>

#include <ATen/NestedTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/detach_native.h>
#include <ATen/ops/native_dropout.h>
#include <torch/library.h>

namespace backendkit {

/// Nested tensors with the strided layout: one buffer on the device. The sizes, strides and offsets
/// of the tensors in it are on the host, as for PyTorch's own devices.
struct Nested {
  /// Tensors with the jagged layout, a Python subclass, report that they are nested too.
  static bool is(const at::Tensor& tensor) {
    return tensor.is_nested() && tensor.layout() == at::kStrided;
  }

  static const at::native::NestedTensorImpl* of(const at::Tensor& tensor) {
    return static_cast<const at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
  }

  /// A nested tensor's whole storage as a one-dimensional tensor.
  static at::Tensor buffer(const at::Tensor& tensor) {
    return of(tensor)->get_unsafe_storage_as_tensor();
  }

  /// A nested tensor over the storage of `buffer`, otherwise like `tensor`.
  static at::Tensor like(const at::Tensor& tensor, const at::Tensor& buffer) {
    return at::detail::make_tensor<at::native::NestedTensorImpl>(
        buffer, of(tensor)->get_nested_sizes(), of(tensor)->get_nested_strides(),
        of(tensor)->get_storage_offsets());
  }

  /// Registers for the key NestedTensorPrivateUse1 the operators that need no device memory,
  /// because autograd asks for sizes where nothing may throw, and those that draw from the device's
  /// generator.
  static void register_all(torch::Library& aten) {
    aten.impl("_nested_tensor_size", &sizes);
    aten.impl("_nested_tensor_strides", &strides);
    aten.impl("_nested_tensor_storage_offsets", &offsets);
    aten.impl("detach", &at::native::detach);
    aten.impl("native_dropout", &dropout);
  }

 private:
  static at::Tensor sizes(const at::Tensor& self) { return of(self)->get_nested_sizes(); }
  static at::Tensor strides(const at::Tensor& self) { return of(self)->get_nested_strides(); }
  static at::Tensor offsets(const at::Tensor& self) { return of(self)->get_storage_offsets(); }

  static std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& self, double probability,
                                                    std::optional<bool> train) {
    const auto [result, mask] = at::native_dropout(buffer(self), probability, train);
    return {like(self, result), like(self, mask)};
  }
};

}  // namespace backendkit
