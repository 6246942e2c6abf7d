// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include <backendkit/device/driver.h>
#include <backendkit/device/late_registration.h>
#include <backendkit/runtime.h>

namespace backendkit {

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
  /// How many devices there are, as the Runtime tells; 0 when the driver is missing, and where it
  /// fails to count them: `failure` says how. It is asked once in a process, by who needs it first,
  /// and a child by fork has its parent's answer. PyTorch can count 127; a warning tells of others.
  static c10::DeviceIndex count() noexcept {
    const int known = count_.load(std::memory_order_acquire);
    return static_cast<c10::DeviceIndex>(known >= 0 ? known : ask());
  }

  /// Why the Runtime could not count its devices; empty where it could.
  static std::string failure() {
    return count() == 0 && failure_ != nullptr ? *failure_ : std::string();
  }

  /// `count`, but 0 when autograd's engine asks in a process that has not used the device.
  static c10::DeviceIndex visible_count() noexcept {
    return threads_.hidden != nullptr && threads_.hidden(used_) ? c10::DeviceIndex{0} : count();
  }

  /// Who gives autograd's engine threads for the devices; see autograd_threads.h.
  struct Threads {
    /// Whether the engine, which asks for their number, is not to know of the devices.
    bool (*hidden)(const std::atomic<bool>& used) noexcept = nullptr;
    /// Called at the first use, with the number of devices.
    void (*start)(c10::DeviceIndex devices) = nullptr;
  };
  static void set_threads(const Threads& threads) { threads_ = threads; }

  /// Returns a device's index when there is such a device; throws otherwise. It never becomes
  /// another device.
  static int checked(c10::DeviceIndex index) {
    const c10::DeviceIndex known = count();
    const auto name = [] { return c10::DeviceTypeName(kDeviceType, true); };
    TORCH_CHECK(
        known > 0, "no ", name(), " device is available: ",
        failure().empty() ? std::string("torch.") + name() + ".device_count() is 0" : failure());
    TORCH_CHECK(index >= 0 && index < known, "device index ", static_cast<int>(index),
                " is out of range: there ", known == 1 ? "is 1 " : "are ",
                known == 1 ? "" : std::to_string(known) + " ", name(),
                known == 1 ? " device" : " devices");
    return index;
  }

  /// The current device of this thread; 0 when there is none.
  static c10::DeviceIndex current() {
    const c10::DeviceIndex known = count();
    if (known == 0) return 0;
    return static_cast<c10::DeviceIndex>(Driver<Runtime>::current_device(known));
  }

  static void set(c10::DeviceIndex index) {
    const int device = checked(index);
    use();
    if (current() == device) return;
    Driver<Runtime>::set_device(device);
  }

  /// Makes a device current and returns the one that was. Every guard of a device calls it, that
  /// before a kernel as well, which may touch the driver without a call of `use`.
  static c10::DeviceIndex exchange(c10::DeviceIndex index) {
    check_not_forked();
    LateRegistration::make_all();
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

  /// Waits for a device's work. Does nothing before a device is used, for PyTorch's generic code
  /// waits for the accelerator in programs that use only the CPU.
  static void synchronize(c10::DeviceIndex index) {
    const int device = checked(index);
    if (!used()) return;
    check_not_forked();
    Driver<Runtime>::synchronize(device);
  }

  /// Has a function called by `exchange`, in the thread that has it make a device current, also
  /// where it is that already; not when the end of a guard takes it back. It is for a profiler, of
  /// which there is one.
  using Visitor = void (*)(c10::DeviceIndex);
  static void on_exchange(Visitor visit) { visitor_ = visit; }

  /// Notes that the driver is in use from now on. Throws in a child of a process that used it: a
  /// driver does not survive a fork.
  static void use() {
    if (!ready_.load(std::memory_order_acquire)) {
      static std::once_flag once;
      std::call_once(once, [] {
#ifndef _WIN32
        pthread_atfork(nullptr, nullptr, [] { forked_ = true; });
#endif
        used_ = true;
        if (threads_.start != nullptr) threads_.start(count());
        LateRegistration::make_all();
        ready_.store(true, std::memory_order_release);
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
  static constexpr int kUnknown = -1;  ///< nobody has asked
  static constexpr int kAsking = -2;   ///< a thread asks now

  /// Asks the Runtime, or waits for the thread that does. That thread is not there in a child that
  /// is forked meanwhile, which asks itself.
  static int ask() noexcept {
#ifndef _WIN32
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
      int asking = kAsking;
      count_.compare_exchange_strong(asking, kUnknown);
    });
    static_cast<void>(registered);
#endif
    int known = kUnknown;
    while (!count_.compare_exchange_strong(known, kAsking)) {
      if (known >= 0) return known;
      count_.wait(known);
      known = kUnknown;
    }
    known = counted();
    count_.store(known, std::memory_order_release);
    count_.notify_all();
    return known;
  }

  static int counted() noexcept {
    constexpr int kMost = std::numeric_limits<c10::DeviceIndex>::max();
    try {
      const int found = Driver<Runtime>::device_count();
      if (found <= kMost) return found;
      warn_only("there are ", found, " ", c10::DeviceTypeName(kDeviceType, true),
                " devices, of which PyTorch can count ", kMost, ": the others cannot be used");
      return kMost;
    } catch (const c10::Error& error) {
      failure_ = new std::string(error.what_without_backtrace());
    }
    return 0;
  }

  inline static std::atomic<int> count_{kUnknown};
  inline static const std::string* failure_ = nullptr;  ///< written before the count of 0
  inline static std::atomic<Visitor> visitor_{nullptr};
  inline static Threads threads_;  // set when the library is opened
  inline static std::atomic<bool> used_{false};
  inline static std::atomic<bool> ready_{false};  // and autograd has its threads
  inline static std::atomic<bool> forked_{false};
};

}  // namespace backendkit
