// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <backendkit/device/device.h>
#include <backendkit/profiler/device_trace.h>
#include <backendkit/profiler/timed_event.h>

namespace backendkit {

/// What PyTorch's profilers ask a device without a trace of its own: the time between two events.
template <class Runtime>
class ProfilerStubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  /// Where the Runtime has no times, torch.profiler, which asks for nothing else, gets no event and
  /// shows none; the autograd profiler gets an error.
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
              std::int64_t* cpu_ns) const override {
    const c10::DeviceIndex current = Devices<Runtime>::current();
    if (device != nullptr) *device = current;
    if (HasElapsedMs<Runtime> || cpu_ns != nullptr) {
      *event = std::make_shared<TimedEvent<Runtime>>(current);
    } else {
      warn_of_no_times<Runtime>();
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

  // Ranges for another profiler, such as NVTX's: PyTorch asks CUDA and ITT for these alone.
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
    TORCH_CHECK_NOT_IMPLEMENTED(false, "PyTorch marks no ranges for ",
                                c10::DeviceTypeName(kDeviceType, true));
  }
};

/// Tells PyTorch's profilers of the device. `own` is the namespace of the operators that its Python
/// module calls, which are no work of the device.
template <class Runtime>
void register_profiler(const char* own) {
  static ProfilerStubs<Runtime> stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  register_trace_maker([prefix = std::string(own) + "::"] {
    return std::make_unique<DeviceTracer<Runtime>>(prefix);
  });
}

}  // namespace backendkit
