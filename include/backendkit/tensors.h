// SPDX-License-Identifier: Apache-2.0
#pragma once

// Without this, ATen/native/Resize.h includes all operators of PyTorch.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_lazy_clone_native.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/util/ScopeExit.h>

#include <backendkit/copy/copy.h>
#include <backendkit/hooks.h>
#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// The operators that cannot fall back to the CPU: they create tensors, or change the shape over
/// the same memory.
template <class Runtime>
class TensorOperators {
 public:
  static at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                          std::optional<at::Layout> layout, std::optional<at::Device> device,
                          std::optional<bool> pin_memory,
                          std::optional<at::MemoryFormat> memory_format) {
    check_options(layout, pin_memory);
    const c10::DeviceGuard guard(place(device));
    return filled_if_asked(at::detail::empty_generic(size, &Allocator<Runtime>::instance(), kKeys,
                                                     c10::dtype_or_default(dtype), memory_format));
  }

  static at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                                  std::optional<at::ScalarType> dtype,
                                  std::optional<at::Layout> layout,
                                  std::optional<at::Device> device,
                                  std::optional<bool> pin_memory) {
    check_options(layout, pin_memory);
    const c10::DeviceGuard guard(place(device));
    return filled_if_asked(at::detail::empty_strided_generic(
        size, stride, &Allocator<Runtime>::instance(), kKeys, c10::dtype_or_default(dtype)));
  }

  /// Keeps the tensor's contents when it grows, as on the CPU.
  static const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size,
                                  std::optional<at::MemoryFormat> memory_format) {
    at::TensorImpl* tensor = self.unsafeGetTensorImpl();
    const std::size_t before = tensor->unsafe_storage().nbytes();
    if (tensor->sizes() != size) {
      if (c10::multiply_integers(size) != 0) {
        grow(tensor, at::detail::computeStorageNbytesContiguous(
                         size, tensor->dtype().itemsize(),
                         static_cast<std::size_t>(tensor->storage_offset())));
      }
      tensor->set_sizes_contiguous(size);
    }
    if (memory_format.has_value()) {
      TORCH_CHECK(*memory_format != at::MemoryFormat::Preserve, "Unsupported memory format",
                  *memory_format);
      tensor->empty_tensor_restride(*memory_format);
    }
    if (fills_new_memory()) {
      const auto done = begin_filling();
      at::native::fill_resize_deterministic_(self, static_cast<std::int64_t>(before));
    }
    return self;
  }

  static at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset,
                                 c10::IntArrayRef size, c10::IntArrayRef stride) {
    at::TensorImpl* tensor = self.unsafeGetTensorImpl();
    auto restore = c10::make_scope_exit([tensor, before = self.storage()] {
      tensor->set_storage_keep_dtype(before);  // a tensor whose storage cannot grow stays as it is
    });
    at::native::checkSetStorage(self, std::move(storage), offset, size, stride);
    if (c10::multiply_integers(size) != 0) {
      const std::size_t item = tensor->dtype().itemsize();
      const auto first = static_cast<std::size_t>(offset);
      grow(tensor, stride.data() == nullptr
                       ? at::detail::computeStorageNbytesContiguous(size, item, first)
                       : at::detail::computeStorageNbytes(size, stride, item, first));
    }
    restore.release();
    if (stride.data() == nullptr) {
      tensor->set_sizes_contiguous(size);
    } else {
      tensor->set_sizes_and_strides(size, stride);
    }
    tensor->set_storage_offset(offset);
    return self;
  }

  static at::Tensor& set_source_storage(at::Tensor& self, at::Storage storage) {
    const auto bytes = static_cast<std::int64_t>(storage.nbytes());
    return set_storage(self, std::move(storage), 0,
                       {bytes / static_cast<std::int64_t>(self.itemsize())}, {});
  }

  static at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
    if (self.is_same(source)) return self;
    return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                       source.strides());
  }

  /// Makes the tensor empty, with a storage of its own.
  static at::Tensor& set_nothing(at::Tensor& self) {
    const c10::DeviceGuard guard(self.device());
    c10::Storage storage(c10::Storage::use_byte_size_t(), 0,
                         Allocator<Runtime>::instance().allocate(0),
                         &Allocator<Runtime>::instance(), true);
    return set_storage(self, std::move(storage), 0, {0}, {});
  }

  /// As on the CPU, the first element if there are several.
  static at::Scalar item(const at::Tensor& self) {
    // The CPU's kernel checks this from 2.7 on; before, it reads out of bounds.
    TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
    at::Tensor first = self;
    while (first.dim() > 0) first = first.select(0, 0);
    at::Tensor host = at::detail::empty_cpu({}, self.scalar_type());
    host.copy_(first);
    return at::_local_scalar_dense(host);
  }

  /// A copy that, if possible, shares the memory until one of the two tensors is written.
  static at::Tensor lazy_clone(const at::Tensor& self) {
    c10::StorageImpl& storage = *self.storage().unsafeGetStorageImpl();
    if (!Allocator<Runtime>::make_shareable(storage)) return self.clone();
    return at::native::_lazy_clone(self);
  }

  static at::Tensor copy_and_resize(const at::Tensor& self, const at::Tensor& dst) {
    dst.resize_(self.sizes());
    return Copier<Runtime>::copy(self, dst, false);
  }

  /// PyTorch puts the result of a non-blocking copy to the CPU in pinned memory. If the Runtime has
  /// none, such a copy has completed when it returns.
  static at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device> device,
                            std::optional<bool> pin_memory, bool non_blocking,
                            std::optional<at::MemoryFormat> memory_format) {
    const bool to_host = device.has_value() && device->is_cpu();
    return at::native::_to_copy(self, dtype, layout, device, pin_memory,
                                non_blocking && (HasPinnedMemory<Runtime> || !to_host),
                                memory_format);
  }

  static void record_stream(at::Tensor& self, at::Stream stream) {
    TORCH_CHECK(stream.device_type() == kDeviceType, "record_stream: a tensor on ", self.device(),
                " cannot be used on a stream of ", stream.device());
    Streams<Runtime>::handle(stream.device_index(), stream.id());  // throws for an invalid id
    backendkit::record_stream<Runtime>(self.storage().data_ptr(), stream.id(),
                                       stream.device_index());
  }

  static at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size,
                               c10::IntArrayRef stride, std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
  }

  static at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
    return at::native::view(self, size);
  }

  static at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size,
                                  c10::IntArrayRef stride) {
    return at::native::_reshape_alias(self, size, stride);
  }

  static void register_all(torch::Library& aten) {
    register_unless_own(aten, "empty.memory_format", &empty);
    register_unless_own(aten, "empty_strided", &empty_strided);
    register_unless_own(aten, "resize_", &resize);
    register_unless_own(aten, "set_.source_Storage_storage_offset", &set_storage);
    register_unless_own(aten, "set_.source_Storage", &set_source_storage);
    register_unless_own(aten, "set_.source_Tensor", &set_tensor);
    register_unless_own(aten, "set_", &set_nothing);
    register_unless_own(aten, "_lazy_clone", &lazy_clone);
    register_unless_own(aten, "_local_scalar_dense", &item);
    register_unless_own(aten, "_copy_from", &Copier<Runtime>::copy);
    register_unless_own(aten, "_copy_from_and_resize", &copy_and_resize);
    register_unless_own(aten, "_to_copy", &to_copy);
    register_unless_own(aten, "record_stream", &record_stream);
    register_unless_own(aten, "as_strided", &as_strided);
    register_unless_own(aten, "view", &view);
    register_unless_own(aten, "_reshape_alias", &reshape_alias);
    register_unless_own(aten, "unfold", &at::native::unfold);
    register_unless_own(aten, "view_as_real", &at::native::view_as_real);
    register_unless_own(aten, "view_as_complex", &at::native::view_as_complex);
  }

 private:
  static constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};

  static c10::Device place(std::optional<at::Device> device) {
    const c10::Device wanted = device.value_or(c10::Device(kDeviceType));
    return {kDeviceType, Devices<Runtime>::resolve(wanted)};
  }

  static void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
    TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
                "only strided tensors can be created on ", c10::DeviceTypeName(kDeviceType, true));
    TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  }

  /// Follows torch.utils.deterministic.fill_uninitialized_memory, except for what a kernel
  /// allocates in order to fill another tensor.
  static bool fills_new_memory() {
    const at::Context& context = at::globalContext();
    return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory() &&
           !filling_;
  }

  /// Disables filling until the returned value is destroyed.
  static auto begin_filling() {
    filling_ = true;
    return c10::make_scope_exit([] { filling_ = false; });
  }

  static at::Tensor filled_if_asked(at::Tensor made) {
    if (fills_new_memory()) {
      const auto done = begin_filling();
      at::native::fill_empty_deterministic_(made);
    }
    return made;
  }

  inline static thread_local bool filling_ = false;

  /// Grows a tensor's storage to at least `bytes`.
  static void grow(at::TensorImpl* tensor, std::size_t bytes) {
    c10::StorageImpl* storage = tensor->unsafe_storage().unsafeGetStorageImpl();
    if (bytes > storage->nbytes()) resize_storage<Runtime>(storage, bytes);
  }
};

}  // namespace backendkit
