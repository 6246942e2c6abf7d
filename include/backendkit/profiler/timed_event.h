// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <backendkit/captures.h>
#include <backendkit/device/device.h>
#include <backendkit/device/display_name.h>
#include <backendkit/device/event.h>
#include <backendkit/stream.h>

namespace backendkit {

/// The first function that a Runtime without `elapsed_ms` has to implement.
template <class Runtime>
constexpr const char* missing_timing_function() {
  return HasEvents<Runtime> ? "elapsed_ms" : "create_event";
}

template <class Runtime>
void warn_without_timing() {
  TORCH_WARN_ONCE("torch.profiler shows no times for ", DisplayName::get(),
                  ": its Runtime does not implement `", missing_timing_function<Runtime>(), "`");
}

/// A point in the work of a device's current stream whose time can be measured. Work that a graph
/// records does not run now, so it has no times. Raises NotImplementedError if the Runtime has no
/// events with timing.
template <class Runtime>
class TimedEvent {
 public:
  explicit TimedEvent(c10::DeviceIndex device) : device_(device) {
    if constexpr (HasElapsedMs<Runtime>) {
      Devices<Runtime>::checked(device);
      Devices<Runtime>::use();
      stream_ = Streams<Runtime>::current(device);
      if (Captures::recording(device, stream_)) return;
      handle_ = recorded_event<Runtime>(device, stream_, true);
    } else {
      missing("timing for profilers", missing_timing_function<Runtime>());
    }
  }

  /// A forked child keeps the driver's event, because it cannot use the driver.
  ~TimedEvent() {
    if constexpr (HasElapsedMs<Runtime>) {
      if (handle_ == nullptr || Devices<Runtime>::forked()) return;
      Driver<Runtime>::destroy_event(handle_, device_);
    }
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void synchronize() const {
    if constexpr (HasElapsedMs<Runtime>) {
      if (handle_ != nullptr) Driver<Runtime>::synchronize_event(handle_, device_);
    }
  }

  /// Milliseconds between two events of one device; waits for both. 0 for events of two devices,
  /// whose clocks are unrelated, and for those without a time.
  double ms_since([[maybe_unused]] const TimedEvent& start) const {
    if constexpr (HasElapsedMs<Runtime>) {
      if (start.device_ != device_ || !start.has_time() || !has_time()) return 0;
      start.synchronize();
      synchronize();
      return Driver<Runtime>::elapsed_ms(start.handle_, handle_, device_);
    } else {
      return 0;
    }
  }

  bool has_time() const { return handle_ != nullptr; }
  c10::DeviceIndex device() const { return device_; }
  c10::StreamId stream() const { return stream_; }

 private:
  const c10::DeviceIndex device_;
  c10::StreamId stream_ = 0;
  EventHandle handle_ = nullptr;
};

}  // namespace backendkit
