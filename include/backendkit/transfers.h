// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <shared_mutex>

#include <c10/core/DeviceGuard.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/SmallVector.h>

#include <backendkit/event.h>
#include <backendkit/stream.h>

namespace backendkit {

/// Who begins copies to memory of a device holds it shared; alone who writes back what others may
/// write, see strided.h.
inline std::shared_mutex& writes_to(c10::DeviceIndex device) {
  constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
  static auto* const all = new std::array<std::shared_mutex, kDevices>;
  return (*all)[static_cast<std::size_t>(device)];
}

/// Copies of bytes on the current streams of devices. Those that the host takes part in are waited
/// for at the latest when this object goes: its memory must be there as long.
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
    } catch (const std::exception& error) {
      TORCH_WARN("a copy of the device failed: ", error.what());
    }
  }

  /// Begins a copy within a device, or between it and the host; `wait` is false for memory of the
  /// host that stays as it is until the device has done it.
  void begin(void* dst, const void* src, std::size_t bytes, CopyKind kind, c10::DeviceIndex device,
             [[maybe_unused]] bool wait = true) {
    if (bytes == 0) return;
    const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
    Devices<Runtime>::use();
    StreamHandle const stream = current_stream<Runtime>(device);
    if constexpr (HasStreams<Runtime>) {
      if (wait && kind != CopyKind::kDeviceToDevice) note(device);
    }
    std::shared_lock<std::shared_mutex> lock(writes_to(device), std::defer_lock);
    if (kind != CopyKind::kDeviceToHost) lock.lock();
    Runtime::copy(dst, src, bytes, kind, stream);
  }

  /// Begins a copy between two devices, one of which reaches the other's memory, on the current
  /// stream of `from`: after what the current streams of both have to do now, and before what they
  /// get later.
  static void begin_peer(void* dst, c10::DeviceIndex to, const void* src, c10::DeviceIndex from,
                         std::size_t bytes) requires HasPeers<Runtime> {
    if (bytes == 0) return;
    const c10::DeviceGuard guard(c10::Device(kDeviceType, from));
    Devices<Runtime>::use();
    let_wait(from, to);
    const std::shared_lock<std::shared_mutex> lock(writes_to(to));
    Runtime::copy_peer(dst, to, src, from, bytes, current_stream<Runtime>(from));
    let_wait(to, from);
  }

  /// Waits for the copies that the host takes part in.
  void finish() {
    while (!waited_for_.empty()) {
      Streams<Runtime>::synchronize_current(waited_for_.pop_back_val());
    }
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

  void note(c10::DeviceIndex device) {
    for (const c10::DeviceIndex noted : waited_for_) {
      if (noted == device) return;
    }
    waited_for_.push_back(device);
  }

  c10::SmallVector<c10::DeviceIndex, 2> waited_for_;
};

}  // namespace backendkit
