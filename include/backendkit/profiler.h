// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <backendkit/device/device.h>
#include <backendkit/device/display_name.h>
#include <backendkit/profiler/device_trace.h>
#include <backendkit/profiler/timed_event.h>

namespace backendkit {

/// What PyTorch's profilers need from a device without its own trace: the time between two events.
template <class Runtime>
class ProfilerStubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  /// If the Runtime cannot measure times, the autograd profiler gets an error. torch.profiler,
  /// which asks only for the event, gets none and shows none.
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
              std::int64_t* cpu_ns) const override {
    const c10::DeviceIndex current = Devices<Runtime>::current();
    if (device != nullptr) *device = current;
    if (HasElapsedMs<Runtime> || cpu_ns != nullptr) {
      *event = std::make_shared<TimedEvent<Runtime>>(current);
    } else {
      warn_without_timing<Runtime>();
    }
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
  }

  /// In microseconds.
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub* start,
                const torch::profiler::impl::ProfilerVoidEventStub* end) const override {
    const auto& first = *static_cast<const TimedEvent<Runtime>*>(start->get());
    const auto& last = *static_cast<const TimedEvent<Runtime>*>(end->get());
    return static_cast<float>(last.ms_since(first) * 1e3);
  }

  // Ranges for external profilers such as NVTX: PyTorch calls these only for CUDA and ITT.
  void mark(const char*) const override { no_ranges(); }
  void rangePush(const char*) const override { no_ranges(); }
  void rangePop() const override { no_ranges(); }

  bool enabled() const override { return HasElapsedMs<Runtime>; }

  void onEachDevice(std::function<void(int)> visit) const override {
    c10::OptionalDeviceGuard guard;
    for (c10::DeviceIndex index = 0; index < Devices<Runtime>::count(); ++index) {
      guard.reset_device(c10::Device(kDeviceType, index));
      visit(index);
    }
  }

  void synchronize() const override {
    if (Devices<Runtime>::used()) Devices<Runtime>::synchronize(Devices<Runtime>::current());
  }

 private:
  static void no_ranges() {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, DisplayName::get(),
        " has no profiler ranges: PyTorch supports them only for CUDA and ITT");
  }
};

/// Registers the device with PyTorch's profilers. `own` is the namespace of the operators that its
/// Python module calls, which do no work on the device.
template <class Runtime>
void register_profiler(const char* own) {
  static ProfilerStubs<Runtime> stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  register_trace_maker([prefix = std::string(own) + "::"] {
    return std::make_unique<DeviceTracer<Runtime>>(prefix);
  });
}

}  // namespace backendkit
