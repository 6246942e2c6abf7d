// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>

#include <backendkit/allocator.h>
#include <backendkit/device/device.h>
#include <backendkit/generator.h>
#include <backendkit/pinned_allocator.h>

namespace backendkit {

/// Resizes a storage on the device to `bytes`, and keeps as much of its contents as fits.
template <class Runtime>
void resize_storage(c10::StorageImpl* storage, std::size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceIndex device = storage->device().index();
  const c10::DeviceGuard guard(storage->device());
  storage->mutable_data();  // memory that is shared until written is copied now
  c10::DataPtr fresh = Allocator<Runtime>::instance().allocate(bytes);
  const std::size_t kept = std::min(bytes, storage->nbytes());
  if (kept != 0) {
    Allocator<Runtime>::instance().copy_data(fresh.get(), storage->data(), kept);
    // The old block may belong to another stream, which must not reuse it before it is copied.
    record_stream<Runtime>(storage->data_ptr(), Streams<Runtime>::current(device), device);
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

/// at::PrivateUse1HooksInterface and at::AcceleratorHooksInterface, which PyTorch's generic code
/// calls. Functions without `override` are not virtual in every release; see torch_version.h.
template <class Runtime>
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const { return true; }
  bool isAvailable() const { return Devices<Runtime>::count() > 0; }

  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return Devices<Runtime>::used() && index >= 0 && index < Devices<Runtime>::count();
  }

  c10::DeviceIndex deviceCount() const override { return Devices<Runtime>::count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { Devices<Runtime>::set(index); }
  c10::DeviceIndex getCurrentDevice() const override { return Devices<Runtime>::current(); }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Devices<Runtime>::exchange(index);
  }

  /// Like `exchangeDevice`; a negative index does not change the device.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? Devices<Runtime>::current() : Devices<Runtime>::exchange(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator<Runtime>(index);
  }

  at::Generator getNewGenerator(c10::DeviceIndex index = -1) const {
    return make_generator<Runtime>(index);
  }

  bool isPinnedPtr([[maybe_unused]] const void* pointer) const override {
    if constexpr (HasPinnedMemory<Runtime>) {
      return Devices<Runtime>::in_use() && Driver<Runtime>::is_host_pointer(pointer);
    } else {
      return false;
    }
  }

  c10::Allocator* getPinnedMemoryAllocator() const override {
    if constexpr (!HasPinnedMemory<Runtime>) missing("pinned memory", "allocate_host");
    return &host_allocator<Runtime>();
  }

  /// For memory of the allocator; PyTorch calls it for tensors over memory that it is given.
  at::Device getDeviceFromPtr(void* data) const override {
    const int device = Allocator<Runtime>::device_of(data);
    LateRegistration::make_all();
    TORCH_CHECK(device >= 0, "the pointer does not point into memory that was allocated on ",
                c10::DeviceTypeName(kDeviceType, true));
    return {kDeviceType, static_cast<c10::DeviceIndex>(device)};
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage<Runtime>(storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace backendkit
