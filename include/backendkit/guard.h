// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <backendkit/device.h>

namespace backendkit {

/// c10::impl::DeviceGuardImplInterface for a Runtime of the required functions: devices, and one
/// stream for each, the default one, on which work is done when a call returns.
template <class Runtime>
class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDeviceType, Devices<Runtime>::exchange(device.index())};
  }

  c10::Device getDevice() const override { return {kDeviceType, Devices<Runtime>::current()}; }

  void setDevice(c10::Device device) const override {
    if (device.has_index()) Devices<Runtime>::set(device.index());
  }

  /// Runs in destructors: a device that was current once can be set again.
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index() && Devices<Runtime>::count() > 0) Runtime::set_device(device.index());
  }

  c10::DeviceIndex deviceCount() const noexcept override { return Devices<Runtime>::count(); }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return getDefaultStream(device);
  }

  c10::Stream getDefaultStream(c10::Device device) const noexcept override {
    const c10::DeviceIndex index =
        device.has_index() ? device.index() : Devices<Runtime>::current();
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kDeviceType, index));
  }

  c10::Stream getNewStream(c10::Device, int) const override { missing("create_stream"); }

  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    missing("create_stream");
  }

  /// There is no other stream to exchange it for.
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return getDefaultStream(stream.device());
  }

  /// The default stream has no work left when a call returns.
  bool queryStream(const c10::Stream&) const override { return true; }

  void synchronizeStream(const c10::Stream& stream) const override {
    Devices<Runtime>::synchronize(stream.device_index());
  }

  void synchronizeDevice(const c10::DeviceIndex index) const {
    Devices<Runtime>::synchronize(index);
  }

  // What an event would wait for is done when it is recorded.
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}

  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { missing("elapsed_ms"); }

 private:
  [[noreturn]] static void missing(const char* function) {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "this backend has no streams and no timing: its Runtime does "
                                "not implement `",
                                function, "`");
    std::abort();
  }
};

}  // namespace backendkit
