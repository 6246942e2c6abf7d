// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_has_compatible_shallow_copy_type_native.h>

#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// aten::_has_compatible_shallow_copy_type: whether `tensor.data = other` can make the tensor one
/// of another device. `Module.to` asks it for each parameter, and for its gradient: the parameter
/// stays the same object where the answer is yes, and a new one takes its place where it is no.
/// PyTorch itself says yes for the devices in its tree only.
struct ShallowCopy {
  /// PyTorch's answer for strided tensors of the devices in its tree, with this device as one more
  /// of them; yes for other tensors only where the copy takes over all that they hold.
  static bool is_possible(const at::Tensor& self, const at::Tensor& from) {
    if (is_compressed(self) && self.device() != from.device()) return false;
    if (!at::native::_has_compatible_shallow_copy_type(self, from) &&
        !(is_dense(self) && is_dense(from))) {
      return false;
    }
    forget_metadata_of(self, from);
    return true;
  }

  /// For the keys PrivateUse1 and SparseCsrPrivateUse1, and for AutogradPrivateUse1: an operator
  /// that PyTorch makes of others has nothing for the last key once it has a kernel for another. It
  /// answers there, as PyTorch's own does, before the modes of Python can see it.
  static void register_all(torch::Library& aten) {
    register_unless_own(aten, kOperator, &is_possible);
  }
  static void register_gradients(torch::Library& aten) {
    if (!has_kernel(kOperator)) aten.impl(kOperator, &is_possible);
  }

 private:
  static constexpr const char* kOperator = "_has_compatible_shallow_copy_type";

  /// A strided tensor in memory of a device. Another class of TensorImpl has fields that the copy
  /// would lose, or refuses it by an assertion; a tensor of the meta device has no memory.
  static bool is_dense(const at::Tensor& tensor) {
    using enum c10::BackendComponent;
    constexpr c10::DispatchKeySet kStrided(c10::DispatchKey::Dense);
    constexpr c10::DispatchKeySet kDevices(
        {CPUBit, CUDABit, HIPBit, MPSBit, XPUBit, HPUBit, MTIABit, PrivateUse1Bit});
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    return typeid(impl) == typeid(c10::TensorImpl) && impl.key_set().has_any(kStrided) &&
           impl.key_set().has_any(kDevices);
  }

  /// Of a sparse tensor of the compressed layouts PyTorch copies the device and not the numbers,
  /// which stay where they are.
  static bool is_compressed(const at::Tensor& tensor) {
    return tensor.key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::SparseCsr));
  }

  /// The copy takes over a c10::BackendMeta, and leaves that of `self` where `from` has none: it
  /// would tell of memory that is gone. An empty place for one in `from` is taken over as well.
  static void forget_metadata_of(const at::Tensor& self, const at::Tensor& from) {
    if (self.unsafeGetTensorImpl()->get_backend_meta() == nullptr) return;
    if (from.unsafeGetTensorImpl()->get_backend_meta() != nullptr) return;
    from.unsafeGetTensorImpl()->set_backend_meta(nullptr);
  }
};

}  // namespace backendkit
