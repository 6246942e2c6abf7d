// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include <backendkit/runtime.h>

namespace backendkit {

constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

/// Raises NotImplementedError for a feature whose function a Runtime may have and this one lacks.
[[noreturn]] inline void missing(const char* feature, const char* function) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "this backend has no ", feature,
                              ": its Runtime does not implement `", function, "`");
  std::abort();
}

/// The devices of a Runtime, as PyTorch counts them, with PyTorch's errors for an index out of
/// range. Nothing here touches the driver before a device is used.
template <class Runtime>
class Devices {
 public:
  static_assert(check_runtime<Runtime>());

  /// How many devices there are, as the Runtime tells; 0 when the driver is missing. PyTorch can
  /// count 127.
  static c10::DeviceIndex count() noexcept {
    constexpr int kMost = std::numeric_limits<c10::DeviceIndex>::max();
    return static_cast<c10::DeviceIndex>(std::clamp(Runtime::device_count(), 0, kMost));
  }

  /// Returns a device's index when there is such a device; throws otherwise. It never becomes
  /// another device.
  static int checked(c10::DeviceIndex index) {
    const c10::DeviceIndex known = count();
    const auto name = [] { return c10::DeviceTypeName(kDeviceType, true); };
    TORCH_CHECK(known > 0, "no ", name(), " device is available: torch.", name(),
                ".device_count() is 0");
    TORCH_CHECK(index >= 0 && index < known, "device index ", static_cast<int>(index),
                " is out of range: there ", known == 1 ? "is 1 " : "are ",
                known == 1 ? "" : std::to_string(known) + " ", name(),
                known == 1 ? " device" : " devices");
    return index;
  }

  /// The current device of this thread; 0 when there is none.
  static c10::DeviceIndex current() {
    if (count() == 0) return 0;
    return static_cast<c10::DeviceIndex>(Runtime::current_device());
  }

  static void set(c10::DeviceIndex index) {
    const int device = checked(index);
    use();
    if (Runtime::current_device() == device) return;
    Runtime::set_device(device);
  }

  /// Makes a device current and returns the one that was. Every guard of a device calls it, that
  /// before a kernel as well, which may touch the driver without a call of `use`.
  static c10::DeviceIndex exchange(c10::DeviceIndex index) {
    check_not_forked();
    const c10::DeviceIndex before = current();
    if (index != before || count() == 0) set(index);
    if (const Visitor visit = visitor_.load(std::memory_order_relaxed)) visit(index);
    return before;
  }

  /// The index of a device that may have none, which means the current one.
  static c10::DeviceIndex resolve(c10::Device device) {
    const c10::DeviceIndex index = device.has_index() ? device.index() : current();
    return static_cast<c10::DeviceIndex>(checked(index));
  }

  static void synchronize(c10::DeviceIndex index) {
    const int device = checked(index);
    use();
    Runtime::synchronize(device);
  }

  /// Has a function called by `exchange`, in the thread that has it make a device current, also
  /// where it is that already; not when the end of a guard takes it back. It is for a profiler, of
  /// which there is one.
  using Visitor = void (*)(c10::DeviceIndex);
  static void on_exchange(Visitor visit) { visitor_ = visit; }

  /// Notes that the driver is in use from now on. Throws in a child of a process that used it: a
  /// driver does not survive a fork.
  static void use() {
    if (!used_.load(std::memory_order_acquire)) {
      static std::once_flag once;
      std::call_once(once, [] {
#ifndef _WIN32
        pthread_atfork(nullptr, nullptr, [] { forked_ = true; });
#endif
        used_.store(true, std::memory_order_release);
      });
    }
    check_not_forked();
  }

  static bool used() {
    return used_;
  }

  /// Whether this process is a child, by fork, of one that used the device.
  static bool forked() {
    return forked_;
  }

  /// Throws in such a child. Asked before a lock is taken: a thread of the parent may have held it.
  static void check_not_forked() {
    TORCH_CHECK(!forked_, "Cannot re-initialize ", c10::DeviceTypeName(kDeviceType, true),
                " in forked subprocess. To use ", c10::DeviceTypeName(kDeviceType, true),
                " with multiprocessing, you must use the 'spawn' start method");
  }

  /// Whether this process itself uses the device.
  static bool in_use() {
    return used() && !forked();
  }

 private:
  inline static std::atomic<Visitor> visitor_{nullptr};
  inline static std::atomic<bool> used_{false};
  inline static std::atomic<bool> forked_{false};
};

}  // namespace backendkit
