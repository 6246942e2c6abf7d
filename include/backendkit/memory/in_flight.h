// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <c10/util/SmallVector.h>

namespace backendkit {

/// Memory that a device may still read or write because the wait for its work failed. It is kept,
/// with its size, until a later wait for the same stream or for the whole device succeeds;
/// otherwise until the process ends. Thread-safe.
class InFlight {
 public:
  using Storages = c10::SmallVector<c10::Storage, 2>;

  static void keep(c10::DeviceIndex device, c10::StreamId stream, const Storages& storages) {
    const std::lock_guard<std::mutex> lock(mutex());
    for (const c10::Storage& storage : storages) {
      c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
      all().push_back({device, stream, storage, impl->resizable()});
      impl->set_resizable(false);
    }
    any_.store(true, std::memory_order_release);
  }

  /// Releases the memory after a wait for a stream, or for the whole device if none is given, has
  /// succeeded. Call it without holding a lock: releasing memory may run other code.
  static void release(c10::DeviceIndex device, std::optional<c10::StreamId> stream = std::nullopt) {
    if (!any_.load(std::memory_order_acquire)) return;
    std::vector<Kept> done;
    const std::lock_guard<std::mutex> lock(mutex());
    std::vector<Kept> others;
    for (Kept& one : all()) {
      const bool is_done = one.device == device && stream.value_or(one.stream) == one.stream;
      if (is_done && one.resizable) one.storage.unsafeGetStorageImpl()->set_resizable(true);
      (is_done ? done : others).push_back(std::move(one));
    }
    all() = std::move(others);
    any_.store(!all().empty(), std::memory_order_release);
  }

 private:
  struct Kept {
    c10::DeviceIndex device;
    c10::StreamId stream;
    c10::Storage storage;
    bool resizable;  ///< whether it was resizable
  };

  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }

  static std::vector<Kept>& all() {
    static auto* const all = new std::vector<Kept>;  // memory in flight outlives static destructors
    return *all;
  }

  inline static std::atomic<bool> any_{false};
};

}  // namespace backendkit
