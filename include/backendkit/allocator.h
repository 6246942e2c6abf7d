// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <c10/core/Allocator.h>

#include <backendkit/device.h>
#include <backendkit/stream.h>

namespace backendkit {

/// c10::Allocator over `Runtime::allocate`: each tensor has a block of the driver's own, on the
/// device that is current when it is made. Throws torch.OutOfMemoryError when there is none.
/// Thread-safe as far as the Runtime is.
template <class Runtime>
class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = Devices<Runtime>::checked(Devices<Runtime>::current());
    const c10::Device where(kDeviceType, static_cast<c10::DeviceIndex>(device));
    if (bytes == 0) return {nullptr, nullptr, &free_block, where};
    Devices<Runtime>::use();
    void* pointer = nullptr;
    try {
      pointer = Runtime::allocate(bytes, device);
    } catch (const std::bad_alloc&) {
      out_of_memory(bytes, device);
    }
    if (pointer == nullptr) out_of_memory(bytes, device);
    return {pointer, new Block{pointer, bytes, device}, &free_block, where};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    if (bytes == 0) return;
    const c10::DeviceIndex device = Devices<Runtime>::current();
    Runtime::copy(dst, src, bytes, CopyKind::kDeviceToDevice, current_stream<Runtime>(device));
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
      if constexpr (HasStreams<Runtime>) finish(block->device);
      Runtime::deallocate(block->pointer, block->bytes, block->device);
    }
    delete block;
  }

  /// Waits for the work that may use a block which is about to go.
  static void finish(int device) noexcept {
    try {
      Runtime::synchronize(device);
    } catch (...) {  // the driver says so again at its next call
    }
  }

  [[noreturn]] static void out_of_memory(std::size_t bytes, int device) {
    const std::string name = c10::DeviceTypeName(kDeviceType, true);
    TORCH_CHECK_WITH(OutOfMemoryError, false, name, " out of memory. Tried to allocate ",
                     readable(bytes), " on ", name, ":", device);
    std::terminate();
  }

  static std::string readable(std::size_t bytes) {
    constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return std::to_string(bytes) + " bytes";
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024; value /= 1024) ++unit;
    char text[32];
    std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
    return text;
  }
};

/// Tells the allocator that a stream uses a block: the block's memory serves others only when the
/// work is done that the stream has when the block is freed. For an allocator without such a
/// function, which waits for the whole device before it frees, there is nothing to tell.
template <class Runtime>
void record_stream([[maybe_unused]] const c10::DataPtr& block, [[maybe_unused]] c10::StreamId id,
                   [[maybe_unused]] c10::DeviceIndex device) {
  if constexpr (requires { Allocator<Runtime>::instance().record_stream(block, id, device); }) {
    Allocator<Runtime>::instance().record_stream(block, id, device);
  }
}

}  // namespace backendkit
