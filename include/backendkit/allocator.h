// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>

#include <backendkit/device/device.h>
#include <backendkit/device/event.h>
#include <backendkit/memory/caching_allocator.h>
#include <backendkit/memory/out_of_memory.h>
#include <backendkit/profiled_range.h>
#include <backendkit/stream.h>
#include <backendkit/torch_version.h>

namespace backendkit {

/// The memory of one device, in the form that a CachingAllocator needs.
template <class Runtime>
class RuntimeMemory {
 public:
  using Event = EventHandle;

  explicit RuntimeMemory(int device) : device_(device) {}

  void* allocate(std::size_t bytes) {
    const ProfiledRange range("backendkit::allocate_segment");
    return Driver<Runtime>::allocate(bytes, device_);
  }

  void deallocate(void* pointer, std::size_t bytes) {
    const ProfiledRange range("backendkit::free_segment");
    Driver<Runtime>::deallocate(pointer, bytes, device_);
  }

  /// The allocator calls this only before it returns its cache to the driver.
  void synchronize() {
    const ProfiledRange range("backendkit::empty_cache");
    Driver<Runtime>::synchronize(device_);
  }

  /// Without events this waits for the stream's work and returns null.
  std::optional<Event> record(std::int64_t memory) {
    const auto device = static_cast<c10::DeviceIndex>(device_);
    const c10::StreamId stream = Captures::stream_of(memory);
    if (Captures::recording(device, stream)) return std::nullopt;
    if constexpr (HasEvents<Runtime>) {
      return recorded_event<Runtime>(device, stream, false);
    } else {
      Streams<Runtime>::synchronize(device, stream);
      return nullptr;
    }
  }

  bool done([[maybe_unused]] Event event) {
    if constexpr (HasEvents<Runtime>) {
      return Driver<Runtime>::query_event(event, device_);
    } else {
      return true;
    }
  }

  void destroy([[maybe_unused]] Event event) {
    if constexpr (HasEvents<Runtime>) Driver<Runtime>::destroy_event(event, device_);
  }

 private:
  int device_;
};

/// PyTorch's allocator for the device: a c10::DeviceAllocator, or a c10::Allocator in releases
/// without that class. A tensor gets a block from the CachingAllocator of the device that is
/// current when the tensor is created, for the current stream. Throws torch.OutOfMemoryError when
/// there is not enough memory. As thread-safe as the Runtime is. Functions without `override` are
/// not virtual in every release.
template <class Runtime>
class Allocator final : public DeviceAllocatorBase {
 public:
  using Cache = CachingAllocator<RuntimeMemory<Runtime>>;

  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = Devices<Runtime>::checked(Devices<Runtime>::current());
    LateRegistration::make_all();  // a tensor without elements does not use the driver
    const auto index = static_cast<c10::DeviceIndex>(device);
    const c10::Device where(kDeviceType, index);
    if (bytes == 0) return {nullptr, nullptr, &free_block, where};
    Devices<Runtime>::use();
    const std::int64_t memory = Captures::memory_of(index, Streams<Runtime>::current(index));
    MemoryBlock* const block = cache(device).allocate(bytes, memory);
    if (block == nullptr) out_of_memory(bytes, device, memory);
    report(block, static_cast<std::int64_t>(block->bytes), where);
    return {block->pointer, block, &free_block, where};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    if (bytes == 0) return;
    const c10::DeviceIndex device = Devices<Runtime>::current();
    Driver<Runtime>::copy(dst, src, bytes, CopyKind::kDeviceToDevice,
                          current_stream<Runtime>(device), device);
  }

  static Allocator& instance() {
    static auto* const allocator = new Allocator;  // memory may be freed after static destructors
    return *allocator;
  }

  /// The cache of an existing device; created on first use.
  static Cache& cache(int device) {
    std::atomic<Cache*>& place = caches()[static_cast<std::size_t>(device)];
    if (Cache* const made = place.load(std::memory_order_acquire)) return *made;
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (place.load(std::memory_order_relaxed) == nullptr) {
      place.store(new Cache(RuntimeMemory<Runtime>(device), device), std::memory_order_release);
    }
    return *place.load(std::memory_order_relaxed);
  }

  /// The device whose memory contains an address; -1 if there is none.
  static int device_of(const void* address) {
    for (std::atomic<Cache*>& place : caches()) {
      const Cache* const made = place.load(std::memory_order_acquire);
      if (made != nullptr && made->has(address)) return static_cast<int>(&place - caches().data());
    }
    return -1;
  }

  /// Keeps a freed block until the work that the stream, one of the block's device, has when the
  /// block is freed has completed. Ignores memory of other allocators, such as the host's.
  void record_stream(const c10::DataPtr& data, c10::StreamId stream, c10::DeviceIndex device) {
    MemoryBlock* const block = block_of(data);
    if (block == nullptr) return;
    TORCH_CHECK(block->device == device, "record_stream: the stream belongs to device ",
                static_cast<int>(device), ", but the memory belongs to device ", block->device);
    cache(device).record_stream(block, Captures::memory_of(device, stream));
  }

  /// Prepares a storage so that PyTorch can share its memory until it is written, as
  /// `torch._lazy_clone` does: this needs the address as the context, and an allocator that copies
  /// on the storage's device, whichever device is current. Returns false if another device already
  /// shares memory at the same address.
  static bool make_shareable(c10::StorageImpl& storage) {
    const c10::DataPtr& data = storage.data_ptr();
    if (data.get_deleter() != &free_block || data.get_context() == nullptr) return true;
    const c10::Device where = data.device();
    void* const address = data.get();
    {
      const std::lock_guard<std::mutex> lock(by_address().mutex);
      auto* const block = static_cast<MemoryBlock*>(data.get_context());
      if (!by_address().blocks.emplace(address, block).second) return false;
    }
    storage._mutable_data_ptr_no_checks().release_context();
    storage.set_data_ptr_noswap({address, address, &free_address, where});
    storage.set_allocator(&on_device(where.index()));
    return true;
  }

  /// Limits this process to a fraction of a device's memory, from 0 to 1.
  static void set_fraction(int device, double fraction) {
    TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1,
                      "the memory fraction must be from 0 to 1, got ", fraction);
    const double total = static_cast<double>(memory_info(device).total);
    cache(device).set_limit(fraction == 1 ? std::numeric_limits<std::size_t>::max()
                                          : static_cast<std::size_t>(total * fraction));
    fractions()[static_cast<std::size_t>(device)] = fraction;
  }

  static double fraction(int device) { return fractions()[static_cast<std::size_t>(device)]; }

  static MemoryInfo memory_info([[maybe_unused]] int device) {
    if constexpr (HasMemoryInfo<Runtime>) {
      Devices<Runtime>::use();
      return Driver<Runtime>::memory_info(device);
    } else {
      missing("figures of free memory", "memory_info");
    }
  }

  // c10::DeviceAllocator

  bool initialized() { return Devices<Runtime>::in_use(); }

  /// Does nothing in a forked child of a process that used the device: its blocks belong to the
  /// parent.
  void emptyCache(MempoolId = {0, 0}) {
    if (!initialized()) return;
    for (std::atomic<Cache*>& place : caches()) {
      if (Cache* const made = place.load(std::memory_order_acquire)) made->empty_cache();
    }
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) {
    record_stream(data, stream.id(), stream.device_index());
  }

  DeviceStatistics getDeviceStats(c10::DeviceIndex device) {
    return device_statistics(cache(Devices<Runtime>::checked(device)).statistics());
  }

  void resetAccumulatedStats(c10::DeviceIndex device) {
    cache(Devices<Runtime>::checked(device)).reset_accumulated();
  }

  void resetPeakStats(c10::DeviceIndex device) {
    cache(Devices<Runtime>::checked(device)).reset_peak();
  }

  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) {
    const MemoryInfo info = memory_info(Devices<Runtime>::checked(device));
    return {info.free, info.total};
  }

 private:
  static constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;

  static std::array<std::atomic<Cache*>, kDevices>& caches() {
    static std::array<std::atomic<Cache*>, kDevices> all{};
    return all;
  }

  static std::array<std::atomic<double>, kDevices>& fractions() {
    static auto& all = *[] {
      auto* const made = new std::array<std::atomic<double>, kDevices>;
      for (std::atomic<double>& one : *made) one = 1;
      return made;
    }();
    return all;
  }

  /// An allocator bound to one device, for callers that do not make that device current.
  struct OnDevice final : c10::Allocator {
    c10::DataPtr allocate(std::size_t bytes) override {
      const c10::DeviceGuard guard(device);
      return instance().allocate(bytes);
    }

    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

    void copy_data(void* dst, const void* src, std::size_t bytes) const override {
      const c10::DeviceGuard guard(device);
      instance().copy_data(dst, src, bytes);
    }

    c10::Device device{kDeviceType};
  };

  static OnDevice& on_device(c10::DeviceIndex index) {
    static auto* const all = [] {
      constexpr auto kMost = std::size_t{std::numeric_limits<c10::DeviceIndex>::max()} + 1;
      auto* const made = new std::array<OnDevice, kMost>;
      for (std::size_t i = 0; i < kMost; ++i) {
        (*made)[i].device = {kDeviceType, static_cast<c10::DeviceIndex>(i)};
      }
      return made;
    }();
    return (*all)[static_cast<std::size_t>(index)];
  }

  /// The blocks of storages that `make_shareable` changed.
  struct ByAddress {
    std::mutex mutex;
    std::unordered_map<void*, MemoryBlock*> blocks;
  };

  static ByAddress& by_address() {
    static auto* const all = new ByAddress;  // memory may be freed after static destructors
    return *all;
  }

  /// The block that holds a storage's memory, also if several storages share it; null if the memory
  /// belongs to another allocator, such as the host's.
  static MemoryBlock* block_of(const c10::DataPtr& data) {
    if (data.get_deleter() == &free_block) return static_cast<MemoryBlock*>(data.get_context());
    const std::lock_guard<std::mutex> lock(by_address().mutex);
    const auto found = by_address().blocks.find(data.get());
    if (found == by_address().blocks.end()) return nullptr;
    return found->second->device == data.device().index() ? found->second : nullptr;
  }

  static void free_address(void* address) {
    if (Devices<Runtime>::forked()) return;
    MemoryBlock* block = nullptr;
    {
      const std::lock_guard<std::mutex> lock(by_address().mutex);
      const auto found = by_address().blocks.find(address);
      block = found->second;
      by_address().blocks.erase(found);
    }
    free_block(block);
  }

  /// Does nothing in a forked child: the driver that allocated the block is not available there,
  /// and its allocator may be locked. A driver error cannot be thrown from here: the block is
  /// leaked.
  static void free_block(void* context) {
    if (context == nullptr || Devices<Runtime>::forked()) return;
    auto* const block = static_cast<MemoryBlock*>(context);
    const c10::Device where(kDeviceType, static_cast<c10::DeviceIndex>(block->device));
    try {
      report(block, -static_cast<std::int64_t>(block->bytes), where);
      cache(where.index()).free(block);
    } catch (const std::exception& error) {
      TORCH_WARN("memory on ", where, " is leaked: ", error.what());
    }
  }

  /// Reports an allocation to a profiler that records memory; negative for memory that is freed.
  static void report(const MemoryBlock* block, std::int64_t change, c10::Device where) {
    if (!c10::memoryProfilingEnabled()) return;
    const MemoryStatistics now = cache(where.index()).statistics();
    const std::int64_t given_back = change < 0 ? change : 0;
    c10::reportMemoryUsageToProfiler(
        block->pointer, change,
        static_cast<std::size_t>(now.allocated_bytes.all().current + given_back),
        static_cast<std::size_t>(now.reserved_bytes.all().current), where);
  }

  [[noreturn]] static void out_of_memory(std::size_t bytes, int device, std::int64_t memory) {
    OutOfMemory report;
    report.device = device;
    report.bytes = bytes;
    report.statistics = cache(device).statistics();
    c10::reportOutOfMemoryToProfiler(
        static_cast<std::int64_t>(bytes),
        static_cast<std::size_t>(report.statistics.allocated_bytes.all().current),
        static_cast<std::size_t>(report.statistics.reserved_bytes.all().current),
        c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device)));
    report.fraction = fraction(device);
    if constexpr (HasMemoryInfo<Runtime>) {
      try {
        report.info = Driver<Runtime>::memory_info(device);
      } catch (const std::exception&) {
        // Programs handle the out-of-memory error, which is useful without these figures too.
      }
    }
    cache(device).remember_out_of_memory(bytes, memory, report.info ? report.info->free : 0);
    report.raise();
  }
};

/// Records that a stream uses a block: see `Allocator::record_stream`.
template <class Runtime>
void record_stream(const c10::DataPtr& block, c10::StreamId id, c10::DeviceIndex device) {
  Allocator<Runtime>::instance().record_stream(block, id, device);
}

}  // namespace backendkit
