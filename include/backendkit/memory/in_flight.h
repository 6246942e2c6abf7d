// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <c10/util/SmallVector.h>

namespace backendkit {

/// Memory that a device may still read or write because the wait for its work failed. It is kept,
/// with its size, until a wait that began later, for the same stream or for the whole device,
/// succeeds; otherwise until the process ends. Thread-safe.
class InFlight {
 public:
  using Storages = c10::SmallVector<c10::Storage, 2>;

  static void keep(c10::DeviceIndex device, c10::StreamId stream, const Storages& storages) {
    const std::lock_guard<std::mutex> lock(mutex());
    for (const c10::Storage& storage : storages) {
      c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
      all().push_back({device, stream, storage, impl->resizable(), ++kept_});
      impl->set_resizable(false);
    }
    any_.store(true, std::memory_order_release);
  }

  /// Waits for a stream, or for the whole device if none is given, and then releases its memory:
  /// what was kept before the wait began, because work that another thread queues meanwhile need
  /// not have completed. Call it without holding a lock: releasing memory may run other code.
  template <class Wait>
  static void wait(c10::DeviceIndex device, std::optional<c10::StreamId> stream, const Wait& call) {
    const std::uint64_t last = kept_.load(std::memory_order_acquire);
    call();
    if (!any_.load(std::memory_order_acquire)) return;
    std::vector<Kept> done;
    const std::lock_guard<std::mutex> lock(mutex());
    std::vector<Kept> others;
    for (Kept& one : all()) {
      const bool is_done =
          one.number <= last && one.device == device && stream.value_or(one.stream) == one.stream;
      (is_done ? done : others).push_back(std::move(one));
    }
    all() = std::move(others);
    any_.store(!all().empty(), std::memory_order_release);
    for (const Kept& one : done) {
      if (one.resizable) make_resizable(one.storage);
    }
  }

 private:
  struct Kept {
    c10::DeviceIndex device;
    c10::StreamId stream;
    c10::Storage storage;
    bool resizable;        ///< whether it was resizable
    std::uint64_t number;  ///< later ones have larger numbers
  };

  /// Once nothing else keeps the storage, which happens where threads share it.
  static void make_resizable(const c10::Storage& storage) {
    c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
    const auto kept = std::find_if(all().begin(), all().end(), [&](const Kept& one) {
      return one.storage.unsafeGetStorageImpl() == impl;
    });
    if (kept == all().end()) {
      impl->set_resizable(true);
    } else {
      kept->resizable = true;
    }
  }

  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }

  static std::vector<Kept>& all() {
    static auto* const all = new std::vector<Kept>;  // memory in flight outlives static destructors
    return *all;
  }

  inline static std::atomic<bool> any_{false};
  inline static std::atomic<std::uint64_t> kept_{0};  ///< how much memory was kept so far
};

}  // namespace backendkit
