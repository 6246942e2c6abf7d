// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>

#include <c10/core/Stream.h>

#include <backendkit/captures.h>
#include <backendkit/device/device.h>

namespace backendkit {

/// The streams of a Runtime, by device and PyTorch's id. 0 is the default stream, whose handle is
/// null. The others come from pools: each priority of a device has up to 32 streams, which are
/// created when they are first handed out and then reused in turn. Each thread has a current stream
/// per device, initially the default one.
///
/// Thread-safe. Only `next`, `query` and `synchronize` call the driver.
template <class Runtime>
class Streams {
 public:
  static constexpr c10::StreamId kDefault = 0;
  static constexpr int kHighestPriority = -3;
  static constexpr int kLowestPriority = 3;
  static constexpr int kPoolSize = 32;

  /// The id of this thread's current stream of a device.
  static c10::StreamId current([[maybe_unused]] c10::DeviceIndex device) noexcept {
    if constexpr (HasStreams<Runtime>) {
      if (device >= 0) return current_[static_cast<std::size_t>(device)];
    }
    return kDefault;
  }

  /// Makes a stream this thread's current one on a device and returns the previous one. An invalid
  /// id fails when the stream is used, because PyTorch does not let this function throw.
  static c10::StreamId exchange(c10::DeviceIndex device,
                                [[maybe_unused]] c10::StreamId id) noexcept {
    const c10::StreamId before = current(device);
    if constexpr (HasStreams<Runtime>) {
      if (device >= 0) current_[static_cast<std::size_t>(device)] = id;
    }
    return before;
  }

  /// The driver's handle of a stream. Throws for an id that was never handed out.
  static StreamHandle handle(c10::DeviceIndex device, c10::StreamId id) {
    if (id == kDefault) return nullptr;
    StreamHandle found = nullptr;
    if constexpr (HasStreams<Runtime>) {
      const Pools* const pools =
          device < 0 ? nullptr
                     : pools_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
      if (pools != nullptr && id > 0 && id <= kPooled) {
        found = pools->handles[static_cast<std::size_t>(id - 1)].load(std::memory_order_acquire);
      }
    }
    TORCH_CHECK(found != nullptr, c10::DeviceTypeName(kDeviceType, true), ":",
                static_cast<int>(device), " has no stream with id ", id,
                ": create streams with torch.Stream(device)");
    return found;
  }

  /// The id of the next stream of a pool; out-of-range priorities use the nearest pool.
  static c10::StreamId next(c10::DeviceIndex device, [[maybe_unused]] int priority) {
    if constexpr (HasStreams<Runtime>) {
      Devices<Runtime>::checked(device);
      Devices<Runtime>::use();
      const int wanted = std::clamp(priority, kHighestPriority, kLowestPriority);
      const auto level = static_cast<std::size_t>(wanted - kHighestPriority);
      Pools& pools = pools_of(device);
      const std::lock_guard<std::mutex> lock(pools.mutex);
      const std::size_t place = level * kPoolSize + pools.turns[level];
      std::atomic<StreamHandle>& handle = pools.handles[place];
      if (handle.load(std::memory_order_relaxed) == nullptr) {
        handle.store(Driver<Runtime>::create_stream(device, wanted), std::memory_order_release);
      }
      pools.turns[level] = (pools.turns[level] + 1) % kPoolSize;
      return static_cast<c10::StreamId>(place + 1);
    } else {
      missing("streams", "create_stream");
    }
  }

  /// Whether a stream's work has completed; without streams, it always has.
  static bool query([[maybe_unused]] c10::DeviceIndex device, [[maybe_unused]] c10::StreamId id) {
    if constexpr (HasStreams<Runtime>) {
      Devices<Runtime>::checked(device);
      Devices<Runtime>::use();
      Captures::refuse(device, id, "a question whether the stream's work has completed");
      return Driver<Runtime>::query_stream(handle(device, id), device);
    } else {
      return true;
    }
  }

  /// Waits until a stream's work has completed; without streams, waits for the whole device. Does
  /// nothing before the device is used: PyTorch calls this for the accelerator when it saves a
  /// checkpoint.
  static void synchronize(c10::DeviceIndex device, [[maybe_unused]] c10::StreamId id) {
    if constexpr (HasStreams<Runtime>) {
      Devices<Runtime>::checked(device);
      StreamHandle const stream = handle(device, id);
      if (!Devices<Runtime>::used()) return;
      Devices<Runtime>::check_not_forked();
      Captures::refuse(device, id, "a wait for the stream's work");
      Devices<Runtime>::wait_for_results(
          [&] { Driver<Runtime>::synchronize_stream(stream, device); });
    } else {
      Devices<Runtime>::synchronize(device);
    }
  }

  /// Waits for this thread's current stream of a device. Afterwards the host may access what the
  /// device computed for this thread.
  static void synchronize_current(c10::DeviceIndex device) { synchronize(device, current(device)); }

  /// Waits for all work of a device.
  static void synchronize_all(c10::DeviceIndex device) {
    cannot_record(device, "a wait for the device's work");
    Devices<Runtime>::synchronize(device);
  }

  /// Throws if this thread's current stream of a device records a graph, which cannot have `what`.
  template <class Text>
  static void cannot_record(c10::DeviceIndex device, const Text& what) {
    Captures::refuse(device, current(device), what);
  }

 private:
  static constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
  static constexpr std::size_t kLevels = kLowestPriority - kHighestPriority + 1;
  static constexpr auto kPooled = static_cast<c10::StreamId>(kLevels * kPoolSize);

  /// A device's pools, by priority. The stream with id N is at N - 1.
  struct Pools {
    std::mutex mutex;
    std::array<std::size_t, kLevels> turns{};
    std::array<std::atomic<StreamHandle>, kLevels * kPoolSize> handles{};
  };

  /// Pools are never freed: streams live as long as the process.
  static Pools& pools_of(c10::DeviceIndex device) {
    static std::mutex mutex;
    std::atomic<Pools*>& pools = pools_[static_cast<std::size_t>(device)];
    const std::lock_guard<std::mutex> lock(mutex);
    if (pools.load(std::memory_order_relaxed) == nullptr) {
      pools.store(new Pools, std::memory_order_release);
    }
    return *pools.load(std::memory_order_relaxed);
  }

  inline static thread_local std::array<c10::StreamId, kDevices> current_{};
  inline static std::array<std::atomic<Pools*>, kDevices> pools_{};
};

/// The driver's handle of this thread's current stream of a device, on which a kernel queues its
/// work: `backendkit::current_stream<foo::Runtime>(out.device().index())`. Null is the default
/// stream.
template <class Runtime>
StreamHandle current_stream(c10::DeviceIndex device) {
  return Streams<Runtime>::handle(device, Streams<Runtime>::current(device));
}

}  // namespace backendkit
