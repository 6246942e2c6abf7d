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

/// A thread that begins a copy to memory of a device shares it; a thread that writes back what
/// others may write has it alone, see element_runs.h. Threads get it in turn: while many copy, the one
/// that writes back would wait for ever otherwise.
inline FairSharedMutex& writes_to(c10::DeviceIndex device) {
  constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
  static auto* const all = new std::array<FairSharedMutex, kDevices>;
  return (*all)[static_cast<std::size_t>(device)];
}

/// Waits for this thread's current stream of a device, in a handler of what the driver threw after
/// it may have begun with work on some memory. Where that fails too, the memory stays.
template <class Runtime>
void settle(c10::DeviceIndex device, std::initializer_list<c10::Storage> storages) noexcept {
  try {
    Streams<Runtime>::synchronize_current(device);
  } catch (const c10::Error&) {
    InFlight::keep(device, Streams<Runtime>::current(device), InFlight::Storages(storages));
  }
}

/// Copies of bytes on the current streams of devices. Those that the host takes part in are waited
/// for at the latest when this object goes, whose memory is there as long. Where a wait fails, it
/// stays in flight.
template <class Runtime>
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Waits where `finish` was not called, since an error is under way. One of the driver's on top
  /// of that is told, but not thrown.
  ~Transfers() {
    try {
      finish();
    } catch (const c10::Error& error) {
      warn_only("a copy of the device failed: ", error.what_without_backtrace());
    }
  }

  /// Begins a copy within a device, or between it and the host. `host` is the memory of the host
  /// to wait for; null where that stays as it is until the device has done it.
  void begin(void* dst, const void* src, std::size_t bytes, CopyKind kind, c10::DeviceIndex device,
             [[maybe_unused]] const c10::Storage* host) {
    if (bytes == 0) return;
    const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
    Devices<Runtime>::use();
    StreamHandle const stream = current_stream<Runtime>(device);
    if constexpr (HasStreams<Runtime>) {
      if (host != nullptr) note(device, *host);
    }
    std::shared_lock<FairSharedMutex> lock(writes_to(device), std::defer_lock);
    if (kind != CopyKind::kDeviceToHost) lock.lock();
    Driver<Runtime>::copy(dst, src, bytes, kind, stream, device);
  }

  /// Begins a copy between two devices, one of which reaches the other's memory, on the current
  /// stream of `from`: after what the current streams of both have to do now, and before what they
  /// get later. The storages are those that the bytes lie in.
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

  /// Waits for the copies that the host takes part in.
  void finish() {
    while (!waited_for_.empty()) {
      const auto [device, stream] = waited_for_.pop_back_val();
      try {
        Streams<Runtime>::synchronize(device, stream);
      } catch (...) {
        InFlight::keep(device, stream, hosts_);
        throw;
      }
      InFlight::release(device, stream);
    }
    hosts_.clear();
  }

 private:
  /// Lets the current stream of a device wait for that of another one.
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
  InFlight::Storages hosts_;  ///< of all that is waited for
};

}  // namespace backendkit
