// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <c10/util/Exception.h>

namespace backendkit {

/// Results of devices that are wrong, because a collective was aborted so that streams go on. A
/// wait for any device throws, so that nobody takes the results, or what was computed from them,
/// for right ones. Thread-safe.
class LostWork {
 public:
  /// Waits throw DistBackendError with this text from now on.
  static void add(std::string why) {
    const std::lock_guard<std::mutex> lock(mutex());
    text() = std::move(why);
    ++count_;
    ++times_;
  }

  /// Undoes one `add`: its process group was destroyed by a program that knows.
  static void remove() { --count_; }

  /// A number for `check`, from before a wait: how often `add` was called while nothing was wrong.
  static std::uint64_t times() {
    const std::uint64_t times = times_;
    return count_ == 0 ? times : times - 1;
  }

  /// Throws if there are wrong results, or were at any time of a wait. Call it after the wait.
  static void check(std::uint64_t times_before) {
    if (count_ == 0 && times_ == times_before) return;
    std::string why;
    {
      const std::lock_guard<std::mutex> lock(mutex());
      why = text();
    }
    C10_THROW_ERROR(DistBackendError, why);
  }

 private:
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;  // threads may outlive static objects
    return *mutex;
  }

  static std::string& text() {
    static auto* const text = new std::string;
    return *text;
  }

  inline static std::atomic<int> count_{0};  ///< of groups that have failed
  inline static std::atomic<std::uint64_t> times_{0};
};

}  // namespace backendkit
