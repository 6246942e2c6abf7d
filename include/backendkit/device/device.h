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

#include <backendkit/device/display_name.h>
#include <backendkit/device/driver.h>
#include <backendkit/device/late_error.h>
#include <backendkit/device/late_registration.h>
#include <backendkit/device/lost_work.h>
#include <backendkit/runtime.h>

namespace backendkit {

/// Raises NotImplementedError for a feature whose optional function this Runtime lacks.
[[noreturn]] inline void missing(const char* feature, const char* function) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "this backend has no ", feature,
                              ": its Runtime does not implement `", function, "`");
  std::abort();
}

/// A Runtime's devices as PyTorch counts them, with PyTorch's errors for an index out of range.
/// Calls only `device_count` before a device is used.
template <class Runtime>
class Devices {
 public:
  /// The number of devices that the Runtime reports; 0 if the driver is missing or fails to count
  /// them, and then `failure` says why. Asks the Runtime once per process, on the first call; a
  /// forked child keeps its parent's answer. PyTorch supports 127 devices; if there are more, a
  /// warning says so.
  static c10::DeviceIndex count() noexcept {
    const int known = count_.load(std::memory_order_acquire);
    return static_cast<c10::DeviceIndex>(known >= 0 ? known : ask());
  }

  /// Why the Runtime could not count its devices; empty if it could.
  static std::string failure() {
    return count() == 0 && failure_ != nullptr ? *failure_ : std::string();
  }

  /// Like `count`, but 0 if autograd's engine asks in a process that has not used the device.
  static c10::DeviceIndex visible_count() noexcept {
    return threads_.hidden != nullptr && threads_.hidden(used_) ? c10::DeviceIndex{0} : count();
  }

  /// The functions that give autograd's engine threads for the devices; see autograd_threads.h.
  struct Threads {
    /// Whether the caller is the engine and should not see the devices.
    bool (*hidden)(const std::atomic<bool>& used) noexcept = nullptr;
    /// Called at the first use of a device, with the number of devices.
    void (*start)(c10::DeviceIndex devices) = nullptr;
  };
  static void set_threads(const Threads& threads) { threads_ = threads; }

  /// Returns the index of a device that exists, unchanged; throws otherwise.
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

  /// Makes a device current and returns the previous one. Every device guard calls this, also the
  /// one before a kernel, which may then call the driver without calling `use`.
  static c10::DeviceIndex exchange(c10::DeviceIndex index) {
    check_not_forked();
    LateRegistration::make_all();
    const c10::DeviceIndex before = current();
    if (index != before || count() == 0) set(index);
    if (const Visitor visit = visitor_.load(std::memory_order_relaxed)) visit(index);
    return before;
  }

  /// The index of a device; without one, the current device's.
  static c10::DeviceIndex resolve(c10::Device device) {
    const c10::DeviceIndex index = device.has_index() ? device.index() : current();
    return static_cast<c10::DeviceIndex>(checked(index));
  }

  /// Waits for a device's work. Does nothing before a device is used, because PyTorch's generic
  /// code waits for the accelerator in programs that use only the CPU.
  static void synchronize(c10::DeviceIndex index) {
    wait_for_results([&] { wait(index); });
  }

  /// The same for those that take no results: throws only what the driver throws.
  static void wait(c10::DeviceIndex index) {
    const int device = checked(index);
    if (!used()) return;
    check_not_forked();
    Driver<Runtime>::synchronize(device);
  }

  /// Waits, and throws if results are wrong, or what could not be thrown where it came. A group may
  /// be aborted and destroyed while `wait` waits for its results.
  template <class Wait>
  static void wait_for_results(const Wait& wait) {
    const std::uint64_t times_before = LostWork::times();
    wait();
    LostWork::check(times_before);
    LateError::raise();
  }

  /// Sets a function for `exchange` to call in the thread that makes a device current, even if it
  /// is already current, but not when the end of a guard restores it. There is one such function; a
  /// profiler uses it.
  using Visitor = void (*)(c10::DeviceIndex);
  static void on_exchange(Visitor visit) { visitor_ = visit; }

  /// Marks the driver as in use. Throws in a forked child of a process that has used it, because a
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

  /// Whether this process is a forked child of one that used the device.
  static bool forked() {
    return forked_;
  }

  /// Throws in such a child. Call it before locking a mutex, which a thread of the parent may have
  /// held.
  static void check_not_forked() {
    TORCH_CHECK(!forked_, "Cannot re-initialize ", DisplayName::get(),
                " in forked subprocess. To use ", DisplayName::get(),
                " with multiprocessing, you must use the 'spawn' start method");
  }

  /// Whether this process itself uses the device.
  static bool in_use() {
    return used() && !forked();
  }

 private:
  static constexpr int kUnknown = -1;  ///< not counted yet
  static constexpr int kAsking = -2;   ///< a thread is counting

  /// Asks the Runtime, or waits for the thread that is asking. A child forked meanwhile does not
  /// have that thread, so it asks for itself.
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
      warn_only("found ", found, " ", c10::DeviceTypeName(kDeviceType, true),
                " devices, but PyTorch supports only ", kMost, ": the others cannot be used");
      return kMost;
    } catch (const c10::Error& error) {
      failure_ = new std::string(error.what_without_backtrace());
    }
    return 0;
  }

  inline static std::atomic<int> count_{kUnknown};
  inline static const std::string* failure_ = nullptr;  ///< written before `count_` becomes 0
  inline static std::atomic<Visitor> visitor_{nullptr};
  inline static Threads threads_;  // set when the library is loaded
  inline static std::atomic<bool> used_{false};
  inline static std::atomic<bool> ready_{false};  // used, and autograd has its threads
  inline static std::atomic<bool> forked_{false};
};

}  // namespace backendkit
