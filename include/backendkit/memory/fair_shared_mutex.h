// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace backendkit {

/// A shared mutex that threads get in the order in which they ask for it. With glibc's
/// std::shared_mutex, a thread that wants it exclusively waits until no other thread shares it,
/// and threads may begin to share it in the meantime: with many of them that moment never comes.
///
/// A thread must not ask for it again while it has it, not even to share it twice.
class FairSharedMutex {
 public:
  FairSharedMutex() = default;
  FairSharedMutex(const FairSharedMutex&) = delete;
  FairSharedMutex& operator=(const FairSharedMutex&) = delete;

  void lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return turn == turn_ && !alone_ && sharing_ == 0; });
    ++turn_;
    alone_ = true;
  }

  void unlock() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      alone_ = false;
    }
    changed_.notify_all();
  }

  void lock_shared() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return turn == turn_ && !alone_; });
    ++turn_;
    ++sharing_;
    notify_next(lock);
  }

  void unlock_shared() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--sharing_ == 0) notify_next(lock);
  }

  /// How many threads have asked for it and do not have it yet.
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
  std::uint64_t asked_ = 0;  // so many times, each of which has a number from 0 on
  std::uint64_t turn_ = 0;   // the number whose turn it is
  std::uint64_t sharing_ = 0;
  bool alone_ = false;
};

}  // namespace backendkit
