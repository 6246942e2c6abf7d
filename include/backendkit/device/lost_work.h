// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace backendkit {

/// Devices with results that are wrong, because a collective was aborted so that their streams go
/// on. A wait for such a device throws, so that nobody takes the results for right ones.
/// Thread-safe.
class LostWork {
 public:
  /// Waits for the device throw DistBackendError with this text from now on.
  static void add(c10::DeviceIndex device, std::string why) {
    State& all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    auto& [count, text] = all.devices[static_cast<std::size_t>(device)];
    ++count;
    text = std::move(why);
    ++any_;
  }

  /// Undoes one `add`: its process group was destroyed.
  static void remove(c10::DeviceIndex device) {
    State& all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    --all.devices[static_cast<std::size_t>(device)].count;
    --any_;
  }

  /// Throws if the device has wrong results. Call it after a wait.
  static void check(c10::DeviceIndex device) {
    if (any_.load(std::memory_order_relaxed) == 0 || device < 0) return;
    State& all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto& [count, text] = all.devices[static_cast<std::size_t>(device)];
    if (count > 0) C10_THROW_ERROR(DistBackendError, text);
  }

 private:
  struct Lost {
    int count = 0;  ///< of groups that have failed
    std::string text;
  };
  struct State {
    std::mutex mutex;
    std::array<Lost, std::numeric_limits<c10::DeviceIndex>::max() + 1> devices;
  };

  static State& state() {
    static auto* const state = new State;  // threads may outlive static objects
    return *state;
  }

  inline static std::atomic<int> any_{0};
};

}  // namespace backendkit
