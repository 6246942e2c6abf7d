// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include <backendkit/device/driver_error.h>

namespace backendkit {

/// The error of a program's work that the library got where it can throw nothing, as when a graph
/// that nobody needs any more waits for its end. Drivers tell such an error once, so the program's
/// next wait throws it. Thread-safe.
class LateError {
 public:
  /// Keeps the exception of a handler. If one is kept already, this one becomes a warning.
  static void keep() noexcept {
    const std::lock_guard<std::mutex> lock(mutex());
    if (!there_.exchange(true)) {
      error() = std::current_exception();
    } else {
      warn_only(thrown_text());
    }
  }

  /// Throws what is kept, and forgets it. Call it after a wait.
  static void raise() {
    if (!there_.load(std::memory_order_acquire)) return;
    std::exception_ptr kept;
    {
      const std::lock_guard<std::mutex> lock(mutex());
      kept = std::exchange(error(), nullptr);
      there_ = false;
    }
    if (kept) std::rethrow_exception(kept);
  }

 private:
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;  // threads may outlive static objects
    return *mutex;
  }

  static std::exception_ptr& error() {
    static auto* const error = new std::exception_ptr;
    return *error;
  }

  inline static std::atomic<bool> there_{false};
};

}  // namespace backendkit
