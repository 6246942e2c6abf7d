// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <backendkit/device/driver_error.h>
#include <backendkit/distributed/device_facts.h>

namespace backendkit {

/// PyTorch's guard of the device.
inline c10::impl::VirtualGuardImpl device_guard() {
  return c10::impl::VirtualGuardImpl(kDeviceType);
}

/// A point in the work of a stream, for which the host and other streams can wait; an empty point
/// has always been passed. Copies share one driver event. Without events, the host waits for the
/// stream when the point is made.
class StreamPoint {
 public:
  StreamPoint() = default;

  /// The point after all work that the stream has now. With `timing`, `elapsed_ms` can use it.
  explicit StreamPoint(const c10::Stream& stream, bool timing = false) {
    if (!device_facts().has_events) {
      device_guard().synchronizeStream(stream);
      return;
    }
    event_ = std::make_shared<Event>();
    const auto flag = timing ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
    device_guard().record(&event_->driver, stream, stream.device_index(), flag);
  }

  /// Makes the host wait.
  void wait() const {
    if (event_ != nullptr) device_guard().synchronizeEvent(event_->driver);
  }

  /// Makes later work of a stream wait.
  void block(const c10::Stream& stream) const {
    if (event_ != nullptr) device_guard().block(event_->driver, stream);
  }

  bool passed() const { return event_ == nullptr || device_guard().queryEvent(event_->driver); }

  /// Milliseconds from `start` to this point, both of which have been passed and have timing.
  double elapsed_ms(const StreamPoint& start) const {
    return device_guard().elapsedTime(start.event_->driver, event_->driver, 0);
  }

 private:
  struct Event {
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { device_guard().destroyEvent(driver, 0); }
    void* driver = nullptr;
  };
  std::shared_ptr<Event> event_;
};

}  // namespace backendkit
