// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>

namespace backendkit {

/// A registration with PyTorch's dispatcher that nothing needs before the process has a tensor of
/// the device. It is made when the process is about to have the first one, since a fallback for a
/// dispatch key costs 4 ms of CPU time: PyTorch visits its 3,100 operators.
///
/// That is the earliest sign which all ways to such a tensor have in common: PyTorch's own C++
/// makes nested and compressed tensors of dense ones, and autocast begins without a call of ours.
class LateRegistration {
 public:
  /// Has `make` called at that time, after those before it. For static objects, which are there
  /// before the library is used.
  explicit LateRegistration(void (*make)()) : make_(make) {
    (last_ == nullptr ? first_ : last_->next_) = this;
    last_ = this;
    waiting_.store(true, std::memory_order_release);
  }
  LateRegistration(const LateRegistration&) = delete;
  LateRegistration& operator=(const LateRegistration&) = delete;

  /// Makes those that wait, once in a process; returns when they are made, in any thread. Must not
  /// be called by one of them. What one throws goes to the caller, and the next call tries again.
  static void make_all() {
    if (!waiting_.load(std::memory_order_acquire)) return;
    static auto* const mutex = new std::mutex;  // threads may outlive static objects
    const std::lock_guard<std::mutex> lock(*mutex);
    for (; first_ != nullptr; first_ = first_->next_) first_->make_();
    waiting_.store(false, std::memory_order_release);
  }

 private:
  void (*const make_)();
  LateRegistration* next_ = nullptr;

  inline static LateRegistration* first_ = nullptr;
  inline static LateRegistration* last_ = nullptr;
  inline static std::atomic<bool> waiting_{false};
};

}  // namespace backendkit
