// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace backendkit {

/// A shared mutex that threads get in the order in which they ask for it. With glibc's
/// std::shared_mutex, a thread that wants it exclusively waits until no other thread shares it,
/// while other threads may start to share it: with many of them that moment never comes.
///
/// A thread that holds it must not lock it again, not even shared.
class FairSharedMutex {
 public:
  FairSharedMutex() = default;
  FairSharedMutex(const FairSharedMutex&) = delete;
  FairSharedMutex& operator=(const FairSharedMutex&) = delete;

  void lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return turn == turn_ && !exclusive_ && sharing_ == 0; });
    ++turn_;
    exclusive_ = true;
  }

  void unlock() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      exclusive_ = false;
    }
    changed_.notify_all();
  }

  void lock_shared() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return turn == turn_ && !exclusive_; });
    ++turn_;
    ++sharing_;
    notify_next(lock);
  }

  void unlock_shared() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--sharing_ == 0) notify_next(lock);
  }

  /// The number of threads that are waiting for it.
  std::uint64_t waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_ - turn_;
  }

 private:
  void notify_next(std::unique_lock<std::mutex>& lock) {
    const bool waits = asked_ != turn_;
    lock.unlock();
    if (waits) changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t asked_ = 0;  // number of turns taken; turns count from 0
  std::uint64_t turn_ = 0;   // the current turn
  std::uint64_t sharing_ = 0;
  bool exclusive_ = false;
};

}  // namespace backendkit
