// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/stream_point.h>

namespace backendkit {

/// c10d::Timer: measures the phases of a DistributedDataParallel step, for its logging data. It
/// uses the device's time where the Runtime has `elapsed_ms`, and the host's otherwise.
class StepTimer final : public c10d::Timer {
 public:
  explicit StepTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    c10d::Timer::record(event);
    if (on_device()) {
      points_[static_cast<std::size_t>(event)] =
          StreamPoint(device_guard().getStream(device_), true);
    }
  }

  /// In nanoseconds; nothing if one of the two has not happened, or they are in another order.
  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const auto began = getTimestamp(start);
    const auto ended = getTimestamp(end);
    if (!began || !ended) return std::nullopt;
    std::int64_t taken = *ended - *began;
    if (on_device()) {
      const StreamPoint& first = points_[static_cast<std::size_t>(start)];
      const StreamPoint& last = points_[static_cast<std::size_t>(end)];
      first.wait();
      last.wait();
      constexpr double kNanosecondsPerMillisecond = 1e6;
      taken = static_cast<std::int64_t>(last.elapsed_ms(first) * kNanosecondsPerMillisecond);
    }
    if (taken < 0) return std::nullopt;
    return taken;
  }

 private:
  static bool on_device() { return device_facts().has_events && device_facts().has_elapsed_ms; }

  c10::Device device_;
  std::array<StreamPoint, 5> points_;
};

}  // namespace backendkit
