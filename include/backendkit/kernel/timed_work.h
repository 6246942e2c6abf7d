// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/macros/Macros.h>

#include <backendkit/captures.h>
#include <backendkit/device/driver_error.h>
#include <backendkit/profiler/operator_times.h>

namespace backendkit {

/// One piece of work on a device, whose time counts. If `waits`, it begins and ends with a wait for
/// the thread's current stream, so that its time is that of its own work; otherwise it is the time
/// in which the host starts the work. Work that a graph records does not run now, and there is
/// nothing to wait for: it has no time.
class TimedWork {
 public:
  /// `device` may be without an index: the current one.
  C10_NOINLINE void begin(c10::Device device, bool waits) {
    stream_ = current_stream_of(device);
    if (is_recorded()) return;
    waits_ = waits;
    if (waits_) wait();
    part_.emplace();
  }

  /// The work's own nanoseconds; nothing if it has no time. Throws what the wait throws.
  C10_NOINLINE std::optional<std::int64_t> end() {
    if (!part_.has_value() || is_recorded()) return std::nullopt;
    if (waits_) wait();
    return part_->end();
  }

  bool begun() const { return part_.has_value(); }

 private:
  static c10::Stream current_stream_of(c10::Device device) {
    const c10::impl::VirtualGuardImpl guard(kDeviceType);
    return guard.getStream(device.has_index() ? device : guard.getDevice());
  }

  bool is_recorded() const { return Captures::recording(stream_.device_index(), stream_.id()); }

  void wait() const { c10::impl::VirtualGuardImpl(kDeviceType).synchronizeStream(stream_); }

  c10::Stream stream_{c10::Stream::DEFAULT, c10::Device(kDeviceType, 0)};
  bool waits_ = false;
  std::optional<TimedPart> part_;
};

/// Ends a kernel's work, and counts its time if it has one. Not a part of `timed_kernel`, of which
/// there is one for each operator.
C10_NOINLINE inline void end_kernel(TimedWork& work, std::string_view name_space,
                                    std::string_view op) {
  if (const auto taken = work.end()) KernelTimes::add(name_space, op, *taken);
}

/// Calls a kernel of the operator `name_space::op`, on the current device; its time counts while
/// KernelTimes are taken. A call that throws does not.
template <class Call>
auto timed_kernel(std::string_view name_space, std::string_view op, const Call& call)
    -> decltype(call()) {
  TimedWork work;
  if (KernelTimes::on()) work.begin(c10::Device(kDeviceType), true);
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    if (work.begun()) end_kernel(work, name_space, op);
  } else {
    decltype(call()) result = call();
    if (work.begun()) end_kernel(work, name_space, op);
    return result;
  }
}

}  // namespace backendkit
