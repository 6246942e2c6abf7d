// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>

#include <c10/core/Allocator.h>

#include <backendkit/allocator.h>
#include <backendkit/device/display_name.h>

namespace backendkit {

/// Pinned host memory, in the form that a CachingAllocator needs. Streams of all devices use it, so
/// the cache's stream number combines a device and a stream.
template <class Runtime>
class PinnedMemory {
 public:
  struct Event {
    EventHandle handle;
    int device;
  };

  static constexpr std::int64_t kHost = 0;  // the stream of blocks that no device has used

  static std::int64_t user(c10::DeviceIndex device, c10::StreamId stream) {
    return (static_cast<std::int64_t>(device) + 1) * kDevice + stream;
  }

  void* allocate(std::size_t bytes) { return Driver<Runtime>::allocate_host(bytes); }

  void deallocate(void* pointer, std::size_t bytes) {
    Driver<Runtime>::deallocate_host(pointer, bytes);
  }

  void synchronize() {
    for (int device = 0; device < Devices<Runtime>::count(); ++device) {
      Driver<Runtime>::synchronize(device);
    }
  }

  std::optional<Event> record(std::int64_t user) {
    const auto device = static_cast<int>(user / kDevice - 1);
    const auto event = RuntimeMemory<Runtime>(device).record(user % kDevice);
    if (!event) return std::nullopt;
    return Event{*event, device};
  }

  bool done(Event event) { return RuntimeMemory<Runtime>(event.device).done(event.handle); }
  void destroy(Event event) { RuntimeMemory<Runtime>(event.device).destroy(event.handle); }

 private:
  static constexpr std::int64_t kDevice = std::int64_t{1} << 32;  // more than any stream id
};

/// PyTorch's allocator for pinned memory, which belongs to the CPU: an at::HostAllocator, or a
/// c10::Allocator in releases without that class. Freed memory is kept for later tensors, which get
/// it after the recorded copies that use it have completed. Throws torch.OutOfMemoryError when
/// there is not enough memory. Functions without `override` are not virtual in every release.
template <class Runtime>
class PinnedAllocator final : public HostAllocatorBase {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device host(c10::kCPU);
    if (bytes == 0) return {nullptr, nullptr, &free_block, host};
    // PyTorch's own wording, on which programs for machines without an accelerator may rely.
    TORCH_CHECK(Devices<Runtime>::count() > 0,
                "Cannot access accelerator device when none is available.",
                Devices<Runtime>::failure().empty() ? "" : " ", Devices<Runtime>::failure());
    Devices<Runtime>::use();
    MemoryBlock* const block = cache().allocate(bytes, PinnedMemory<Runtime>::kHost);
    TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, "out of pinned host memory for ",
                     DisplayName::get(), ". Tried to allocate ", bytes, " bytes");
    return {block->pointer, block, &free_block, host};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    default_copy_data(dst, src, bytes);
  }

  static PinnedAllocator& instance() {
    static auto* const allocator = new PinnedAllocator;  // memory may be freed after destructors
    return *allocator;
  }

  /// Keeps freed memory until the work that the stream has when the memory is freed has completed.
  /// Returns false if the memory belongs to another allocator; the caller then has to wait.
  static bool record_stream(const c10::DataPtr& data, c10::StreamId stream,
                            c10::DeviceIndex device) {
    if (data.get_deleter() != &free_block) return false;
    if (auto* const block = static_cast<MemoryBlock*>(data.get_context())) {
      cache().record_stream(block, PinnedMemory<Runtime>::user(device, stream));
    }
    return true;
  }

  // at::HostAllocator

  /// Like `record_stream`, but looks the block up by its address, because the context may belong to
  /// another allocator.
  bool record_event(void* address, void*, c10::Stream stream) {
    return cache().record_stream_at(
        address, PinnedMemory<Runtime>::user(stream.device_index(), stream.id()));
  }

  /// Does nothing in a forked child of a process that used the device: its blocks belong to the
  /// parent.
  void empty_cache() {
    if (Devices<Runtime>::in_use()) cache().empty_cache();
  }

  HostStatistics get_stats() { return host_statistics(cache().statistics()); }
  void reset_accumulated_stats() { cache().reset_accumulated(); }
  void reset_peak_stats() { cache().reset_peak(); }

 private:
  using Cache = CachingAllocator<PinnedMemory<Runtime>>;

  static Cache& cache() {
    static auto* const cache = new Cache;
    return *cache;
  }

  /// As for device memory: see Allocator.
  static void free_block(void* context) {
    if (context == nullptr || Devices<Runtime>::forked()) return;
    try {
      cache().free(static_cast<MemoryBlock*>(context));
    } catch (const std::exception& error) {
      TORCH_WARN("pinned memory is leaked: ", error.what());
    }
  }
};

/// The at::HostAllocator of a Runtime without pinned memory: it allocates nothing and keeps
/// nothing. PyTorch requests it without asking whether there is pinned memory.
class NoPinnedMemory final : public HostAllocatorBase {
 public:
  c10::DataPtr allocate(std::size_t) override { missing("pinned memory", "allocate_host"); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    default_copy_data(dst, src, bytes);
  }

  bool record_event(void*, void*, c10::Stream) { return false; }
  void empty_cache() {}
  HostStatistics get_stats() { return {}; }
  void reset_accumulated_stats() {}
  void reset_peak_stats() {}
};

/// PyTorch's allocator for a Runtime's pinned memory; it lives until the process ends.
template <class Runtime>
HostAllocatorBase& host_allocator() {
  if constexpr (HasPinnedMemory<Runtime>) {
    return PinnedAllocator<Runtime>::instance();
  } else {
    static auto* const none = new NoPinnedMemory;
    return *none;
  }
}

}  // namespace backendkit
