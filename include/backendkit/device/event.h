// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <backendkit/device/device.h>
#include <backendkit/stream.h>

namespace backendkit {

/// A new driver event, recorded after all work queued on a stream so far. The caller destroys it.
template <class Runtime>
EventHandle recorded_event(c10::DeviceIndex device, c10::StreamId id,
                           bool timing) requires HasEvents<Runtime> {
  Captures::refuse(device, id, "an event");
  StreamHandle const stream = Streams<Runtime>::handle(device, id);
  EventHandle const event = Driver<Runtime>::create_event(device, timing);
  try {
    Driver<Runtime>::record_event(event, stream, device);
  } catch (...) {
    Driver<Runtime>::destroy_event(event, device);
    throw;
  }
  return event;
}

/// What the `void*` of PyTorch's events points to. It is null until an event is first recorded. If
/// the Runtime has neither events nor streams, it stays null, because all work has completed when
/// an event is recorded.
template <class Runtime>
class Events {
 public:
  /// Records an event on a stream. The first call creates it, for the stream's device and, if
  /// `timing`, with timing.
  static void record(void** event, c10::DeviceIndex device, [[maybe_unused]] c10::StreamId id,
                     [[maybe_unused]] bool timing) {
    if constexpr (HasEvents<Runtime>) {
      Devices<Runtime>::checked(device);
      Devices<Runtime>::use();
      Captures::refuse(device, id, "an event");
      StreamHandle const stream = Streams<Runtime>::handle(device, id);
      if (*event == nullptr) {
        *event = new Event{Driver<Runtime>::create_event(device, timing), device, timing};
      }
      const Event& recorded = *static_cast<Event*>(*event);
      TORCH_CHECK(recorded.device == device, "an event of device ",
                  static_cast<int>(recorded.device), " cannot be recorded on a stream of device ",
                  static_cast<int>(device));
      Driver<Runtime>::record_event(recorded.handle, stream, device);
    } else if constexpr (HasStreams<Runtime>) {
      missing("events", "create_event");
    } else {
      Devices<Runtime>::checked(device);
    }
  }

  /// Makes work queued from now on on a stream, of any device, wait for an event.
  static void block([[maybe_unused]] void* event, [[maybe_unused]] c10::DeviceIndex device,
                    [[maybe_unused]] c10::StreamId id) {
    if constexpr (HasEvents<Runtime>) {
      if (event == nullptr) return;
      Devices<Runtime>::use();
      Captures::refuse(device, id, "a wait for an event");
      StreamHandle const stream = Streams<Runtime>::handle(device, id);
      Driver<Runtime>::wait_event(stream, of(event).handle, Devices<Runtime>::checked(device));
    }
  }

  static bool query([[maybe_unused]] void* event) {
    if constexpr (HasEvents<Runtime>) {
      if (event == nullptr) return true;
      Devices<Runtime>::use();
      return Driver<Runtime>::query_event(of(event).handle, of(event).device);
    } else {
      return true;
    }
  }

  static void synchronize([[maybe_unused]] void* event) {
    if constexpr (HasEvents<Runtime>) {
      if (event == nullptr) return;
      Devices<Runtime>::use();
      Devices<Runtime>::wait_for_results(
          [&] { Driver<Runtime>::synchronize_event(of(event).handle, of(event).device); });
    }
  }

  /// A forked child keeps the driver's event, because it cannot use the driver.
  static void destroy([[maybe_unused]] void* event) noexcept {
    if constexpr (HasEvents<Runtime>) {
      if (event == nullptr) return;
      if (!Devices<Runtime>::forked()) {
        Driver<Runtime>::destroy_event(of(event).handle, of(event).device);
      }
      delete static_cast<Event*>(event);
    }
  }

  /// Milliseconds from one event to another. Older releases of PyTorch check less than newer ones,
  /// so this checks everything that the driver relies on.
  static double elapsed_ms([[maybe_unused]] void* start, [[maybe_unused]] void* end) {
    if constexpr (HasElapsedMs<Runtime>) {
      TORCH_CHECK_VALUE(start != nullptr && end != nullptr,
                        "Both events must be recorded before calculating elapsed time.");
      TORCH_CHECK_VALUE(of(start).timing && of(end).timing,
                        "Both events must be created with argument 'enable_timing=True'.");
      TORCH_CHECK(of(start).device == of(end).device,
                  "Both events must be on the same device to calculate elapsed time.");
      TORCH_CHECK(query(start) && query(end),
                  "Both events must be completed before calculating elapsed time.");
      return Driver<Runtime>::elapsed_ms(of(start).handle, of(end).handle, of(start).device);
    } else {
      missing("timing", "elapsed_ms");
    }
  }

 private:
  struct Event {
    EventHandle handle;
    c10::DeviceIndex device;
    bool timing;
  };

  static const Event& of(void* event) { return *static_cast<Event*>(event); }
};

}  // namespace backendkit
