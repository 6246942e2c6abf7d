// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>

#include <c10/core/Allocator.h>

#include <backendkit/device.h>

namespace backendkit {

/// c10::Allocator over `Runtime::allocate`: each tensor has a block of the driver's own, on the device
/// that is current when it is made. Throws torch.OutOfMemoryError when there is none. Thread-safe as
/// far as the Runtime is.
template <class Runtime>
class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = Devices<Runtime>::checked(Devices<Runtime>::current());
    const c10::Device where(kDeviceType, static_cast<c10::DeviceIndex>(device));
    if (bytes == 0) return {nullptr, nullptr, &free_block, where};
    Devices<Runtime>::use();
    void* pointer = Runtime::allocate(bytes, device);
    if (pointer == nullptr) out_of_memory(bytes, device);
    return {pointer, new Block{pointer, bytes, device}, &free_block, where};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    if (bytes != 0) Runtime::copy(dst, src, bytes, CopyKind::kDeviceToDevice, nullptr);
  }

  static Allocator& instance() {
    static Allocator allocator;
    return allocator;
  }

 private:
  struct Block {
    void* pointer;
    std::size_t bytes;
    int device;
  };

  static void free_block(void* context) {
    if (context == nullptr) return;
    const auto* block = static_cast<Block*>(context);
    // In a forked child the driver that gave the block is not there.
    if (!Devices<Runtime>::forked()) {
      Runtime::deallocate(block->pointer, block->bytes, block->device);
    }
    delete block;
  }

  [[noreturn]] static void out_of_memory(std::size_t bytes, int device) {
    const std::string name = c10::DeviceTypeName(kDeviceType, true);
    constexpr double kMib = 1024.0 * 1024.0;
    TORCH_CHECK_WITH(OutOfMemoryError, false, name, " out of memory. Tried to allocate ",
                     static_cast<double>(bytes) / kMib, " MiB on ", name, ":", device);
    std::terminate();
  }
};

}  // namespace backendkit
