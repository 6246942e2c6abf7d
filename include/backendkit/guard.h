// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/thread_name.h>

#include <backendkit/allocator.h>
#include <backendkit/device/device.h>
#include <backendkit/device/event.h>
#include <backendkit/memory/in_flight.h>
#include <backendkit/stream.h>
#include <backendkit/torch_version.h>

namespace backendkit {

/// c10::impl::DeviceGuardImplInterface for a Runtime: devices, streams and events. A Runtime
/// without streams has only each device's default stream, whose work has completed when a call
/// returns, so events need nothing from it. Functions without `override` are not virtual in every
/// release; see torch_version.h.
template <class Runtime>
class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDeviceType, Devices<Runtime>::exchange(device.index())};
  }

  c10::Device getDevice() const override { return {kDeviceType, Devices<Runtime>::current()}; }

  /// Throws, except in autograd's threads, which call it as they start and catch nothing. There it
  /// warns; their work makes the device current again, or throws.
  void setDevice(c10::Device device) const override {
    if (!device.has_index()) return;
    try {
      Devices<Runtime>::set(device.index());
    } catch (const c10::Error& error) {
      if (!c10::getThreadName().starts_with("pt_autograd_")) throw;
      warn_only(error.what_without_backtrace());
    }
  }

  /// Runs in destructors: a device that was current before can be made current again. A driver
  /// error becomes a warning.
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (!device.has_index() || Devices<Runtime>::count() == 0) return;
    try {
      Driver<Runtime>::set_device(device.index());
    } catch (const c10::Error& error) {
      warn_only(error.what_without_backtrace(), "; the device before is not current again");
    }
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return Devices<Runtime>::visible_count();
  }

  c10::Stream getStream(c10::Device device) const noexcept(!kStreamsMayThrow) override {
    const c10::DeviceIndex index = index_for_stream(device);
    return stream(index, Streams<Runtime>::current(index));
  }

  c10::Stream getDefaultStream(c10::Device device) const noexcept(!kStreamsMayThrow) override {
    return stream(index_for_stream(device), Streams<Runtime>::kDefault);
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const c10::DeviceIndex index = index_of(device);
    return stream(index, Streams<Runtime>::next(index, priority));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getNewStream(device, high_priority ? -1 : 0);
  }

  c10::Stream exchangeStream(c10::Stream next) const noexcept(!kStreamsMayThrow) override {
    const c10::DeviceIndex index = index_for_stream(next.device());
    return stream(index, Streams<Runtime>::exchange(index, next.id()));
  }

  void* getStreamNativeHandle(const c10::Stream stream) const {
    return Streams<Runtime>::handle(index_of(stream.device()), stream.id());
  }

  bool queryStream(const c10::Stream& stream) const override {
    return Streams<Runtime>::query(index_of(stream.device()), stream.id());
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    const c10::DeviceIndex index = index_of(stream.device());
    InFlight::wait(index, stream.id(), [&] { Streams<Runtime>::synchronize(index, stream.id()); });
  }

  void synchronizeDevice(const c10::DeviceIndex index) const {
    InFlight::wait(index, std::nullopt, [&] { Streams<Runtime>::synchronize_all(index); });
  }

  /// Tensors may have any dtype.
  DeviceCapability getDeviceCapability(c10::Device) const { return {}; }

  bool isStreamCapturing(const c10::Stream&) const { return false; }

  void recordDataPtrOnStream(const c10::DataPtr& block, const c10::Stream& stream) const override {
    record_stream<Runtime>(block, stream.id(), index_of(stream.device()));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    Events<Runtime>::record(event, index_of(stream.device()), stream.id(),
                            flag == c10::EventFlag::BACKEND_DEFAULT);
  }

  void block(void* event, const c10::Stream& stream) const override {
    Events<Runtime>::block(event, index_of(stream.device()), stream.id());
  }

  bool queryEvent(void* event) const override { return Events<Runtime>::query(event); }

  void synchronizeEvent(void* event) const override { Events<Runtime>::synchronize(event); }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    Events<Runtime>::destroy(event);
  }

  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    return Events<Runtime>::elapsed_ms(start, end);
  }

 private:
  static c10::Stream stream(c10::DeviceIndex index, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), id);
  }

  /// The index of a device; without one, the current device's.
  static c10::DeviceIndex index_of(c10::Device device) {
    return device.has_index() ? device.index() : Devices<Runtime>::current();
  }

  /// Like `index_of`. Throws for a device that does not exist, in releases that allow this. In
  /// other releases, if the driver cannot tell the current device, the stream gets an invalid
  /// index, and using it fails.
  static c10::DeviceIndex index_for_stream(c10::Device device) noexcept(!kStreamsMayThrow) {
    if constexpr (kStreamsMayThrow) {
      return static_cast<c10::DeviceIndex>(Devices<Runtime>::checked(index_of(device)));
    } else {
      try {
        return index_of(device);
      } catch (const c10::Error&) {
        return -1;
      }
    }
  }
};

}  // namespace backendkit
