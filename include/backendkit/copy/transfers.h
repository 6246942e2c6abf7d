// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/SmallVector.h>

#include <backendkit/device/event.h>
#include <backendkit/memory/fair_shared_mutex.h>
#include <backendkit/memory/in_flight.h>
#include <backendkit/stream.h>

namespace backendkit {

/// Threads that start a copy to a device's memory share this lock; a thread that writes back the
/// gaps between elements holds it exclusively, see element_runs.h. Threads get it in turn:
/// otherwise the exclusive one would wait for ever while many threads copy.
inline FairSharedMutex& writes_to(c10::DeviceIndex device) {
  constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
  static auto* const all = new std::array<FairSharedMutex, kDevices>;
  return (*all)[static_cast<std::size_t>(device)];
}

/// Waits for this thread's current stream of a device, in a handler of a driver's exception: the
/// driver may already have started to work on these storages. If the wait fails too, they are kept.
template <class Runtime>
void settle(c10::DeviceIndex device, std::initializer_list<c10::Storage> storages) noexcept {
  try {
    Streams<Runtime>::synchronize_current(device);
  } catch (const c10::Error&) {
    InFlight::keep(device, Streams<Runtime>::current(device), InFlight::Storages(storages));
  }
}

/// Copies of bytes on the current streams of devices. At the latest, the destructor waits for those
/// from or to the host, and host memory is kept until then. If a wait fails, the memory stays in
/// flight.
template <class Runtime>
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Waits if `finish` was not called because of an exception. A driver error at this point becomes
  /// a warning.
  ~Transfers() {
    try {
      finish();
    } catch (const c10::Error& error) {
      warn_only("a copy to or from the device failed: ", error.what_without_backtrace());
    }
  }

  /// Starts a copy within a device, or between it and the host. `host` is the host memory to wait
  /// for; null if the caller keeps it unchanged until the device has completed the copy.
  void begin(void* dst, const void* src, std::size_t bytes, CopyKind kind, c10::DeviceIndex device,
             [[maybe_unused]] const c10::Storage* host) {
    if (bytes == 0) return;
    const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
    Devices<Runtime>::use();
    if (kind != CopyKind::kDeviceToDevice) {
      Streams<Runtime>::cannot_record(device, "a copy from or to the host");
    }
    StreamHandle const stream = current_stream<Runtime>(device);
    if constexpr (HasStreams<Runtime>) {
      if (host != nullptr) note(device, *host);
    }
    std::shared_lock<FairSharedMutex> lock(writes_to(device), std::defer_lock);
    if (kind != CopyKind::kDeviceToHost) lock.lock();
    Driver<Runtime>::copy(dst, src, bytes, kind, stream, device);
  }

  /// Starts a copy between two devices, one of which can access the other's memory, on the current
  /// stream of `from`: after the work that both current streams have now, and before the work that
  /// they get later. The storages are those that contain the bytes.
  static void begin_peer(void* dst, const c10::Storage& dst_storage, const void* src,
                         const c10::Storage& src_storage,
                         std::size_t bytes) requires HasPeers<Runtime> {
    if (bytes == 0) return;
    const c10::DeviceIndex to = dst_storage.device().index();
    const c10::DeviceIndex from = src_storage.device().index();
    const c10::DeviceGuard guard(c10::Device(kDeviceType, from));
    Devices<Runtime>::use();
    let_wait(from, to);
    try {
      const std::shared_lock<FairSharedMutex> lock(writes_to(to));
      Driver<Runtime>::copy_peer(dst, to, src, from, bytes, current_stream<Runtime>(from));
      let_wait(to, from);
    } catch (...) {
      settle<Runtime>(from, {dst_storage, src_storage});
      throw;
    }
  }

  /// Waits for the copies from and to the host.
  void finish() {
    while (!waited_for_.empty()) {
      const auto [device, stream] = waited_for_.pop_back_val();
      try {
        InFlight::wait(device, stream, [&] { Streams<Runtime>::synchronize(device, stream); });
      } catch (...) {
        InFlight::keep(device, stream, hosts_);
        throw;
      }
    }
    hosts_.clear();
  }

 private:
  /// Makes the current stream of a device wait for that of another one.
  static void let_wait(c10::DeviceIndex device, c10::DeviceIndex other) {
    if constexpr (HasEvents<Runtime>) {
      void* event = nullptr;
      const auto destroy = c10::make_scope_exit([&] { Events<Runtime>::destroy(event); });
      Events<Runtime>::record(&event, other, Streams<Runtime>::current(other), false);
      Events<Runtime>::block(event, device, Streams<Runtime>::current(device));
    } else if constexpr (HasStreams<Runtime>) {
      Streams<Runtime>::synchronize_current(other);
    }
  }

  void note(c10::DeviceIndex device, const c10::Storage& host) {
    const bool noted_last =
        !hosts_.empty() && hosts_.back().unsafeGetStorageImpl() == host.unsafeGetStorageImpl();
    if (!noted_last) hosts_.push_back(host);
    const std::pair<c10::DeviceIndex, c10::StreamId> wait{device,
                                                          Streams<Runtime>::current(device)};
    for (const auto& noted : waited_for_) {
      if (noted == wait) return;
    }
    waited_for_.push_back(wait);
  }

  c10::SmallVector<std::pair<c10::DeviceIndex, c10::StreamId>, 2> waited_for_;
  InFlight::Storages hosts_;  ///< the host memory of all of these copies
};

}  // namespace backendkit
