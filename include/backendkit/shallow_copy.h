// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_has_compatible_shallow_copy_type_native.h>

#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// aten::_has_compatible_shallow_copy_type: whether `tensor.data = other` can move the tensor to
/// another device. `Module.to` asks this for each parameter and its gradient: if yes, the parameter
/// stays the same object; if no, a new one replaces it. By itself, PyTorch says yes only for the
/// devices in its tree.
struct ShallowCopy {
  /// PyTorch's answer for strided tensors on the devices in its tree, extended to this device; for
  /// other tensors, yes only if the copy takes over everything that they hold.
  static bool is_possible(const at::Tensor& self, const at::Tensor& from) {
    if (is_compressed(self) && self.device() != from.device()) return false;
    if (!at::native::_has_compatible_shallow_copy_type(self, from) &&
        !(is_dense(self) && is_dense(from))) {
      return false;
    }
    forget_metadata_of(self, from);
    return true;
  }

  /// Registers for the keys PrivateUse1 and SparseCsrPrivateUse1, and for AutogradPrivateUse1: once
  /// a composite operator has a kernel for one key, it has none for the last. There it answers like
  /// PyTorch's own, before Python's modes can see the call.
  static void register_all(torch::Library& aten) {
    register_unless_own(aten, kOperator, &is_possible);
  }
  static void register_gradients(torch::Library& aten) {
    if (!has_kernel(kOperator)) aten.impl(kOperator, &is_possible);
  }

 private:
  static constexpr const char* kOperator = "_has_compatible_shallow_copy_type";

  /// Whether a tensor is strided and in a device's memory. Other classes of TensorImpl have fields
  /// that the copy would lose, or reject it with an assertion; a tensor on the meta device has no
  /// memory.
  static bool is_dense(const at::Tensor& tensor) {
    using enum c10::BackendComponent;
    constexpr c10::DispatchKeySet kStrided(c10::DispatchKey::Dense);
    constexpr c10::DispatchKeySet kDevices(
        {CPUBit, CUDABit, HIPBit, MPSBit, XPUBit, HPUBit, MTIABit, PrivateUse1Bit});
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    return typeid(impl) == typeid(c10::TensorImpl) && impl.key_set().has_any(kStrided) &&
           impl.key_set().has_any(kDevices);
  }

  /// For sparse tensors with compressed layouts, PyTorch copies the device but leaves the values
  /// behind.
  static bool is_compressed(const at::Tensor& tensor) {
    return tensor.key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::SparseCsr));
  }

  /// The copy takes over a c10::BackendMeta, but leaves that of `self` if `from` has none: it would
  /// describe memory that is gone. So `from` gets an empty one, which the copy takes over.
  static void forget_metadata_of(const at::Tensor& self, const at::Tensor& from) {
    if (self.unsafeGetTensorImpl()->get_backend_meta() == nullptr) return;
    if (from.unsafeGetTensorImpl()->get_backend_meta() != nullptr) return;
    from.unsafeGetTensorImpl()->set_backend_meta(nullptr);
  }
};

}  // namespace backendkit
