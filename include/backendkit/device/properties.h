// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>

#include <backendkit/device/device.h>

namespace backendkit {

/// The properties of an existing device. Calls the Runtime once per device in a process; if it
/// throws, the next call asks again. The reference stays valid.
template <class Runtime>
const DeviceProperties& properties_of(int device) {
  constexpr std::size_t kDevices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
  static std::array<std::atomic<const DeviceProperties*>, kDevices> all{};
  Devices<Runtime>::use();  // throws in a forked child, where another thread may have held the lock
  std::atomic<const DeviceProperties*>& place = all[static_cast<std::size_t>(device)];
  if (const DeviceProperties* const known = place.load(std::memory_order_acquire)) return *known;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (place.load(std::memory_order_relaxed) == nullptr) {
    place.store(new DeviceProperties(Driver<Runtime>::properties(device)),
                std::memory_order_release);
  }
  return *place.load(std::memory_order_relaxed);
}

}  // namespace backendkit
