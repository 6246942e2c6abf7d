// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <c10/util/thread_name.h>

namespace backendkit {

/// Runs tasks on threads of its own: one thread, and so one task after another in the order of
/// `run`, or as many threads as there are tasks at a time. Threads start when they are needed and
/// end after they had nothing to do for a while. Nothing joins them: a task may need Python's lock,
/// and whoever ends a lane may hold it. So a lane's state lives as long as its last thread.
///
/// Tasks must not throw.
class Lane {
 public:
  using Task = std::function<void()>;

  Lane(const char* name, bool one_thread) : state_(std::make_shared<State>()) {
    state_->name = name;
    state_->one_thread = one_thread;
  }

  /// Throws std::system_error if the process cannot have another thread; the task does not run
  /// then.
  void run(Task task) {
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      const bool enough =
          state_->one_thread ? state_->threads > 0 : state_->idle > state_->tasks.size();
      if (!enough) {
        std::thread(&Lane::work, state_).detach();  // it waits for the mutex
        ++state_->threads;
      }
      state_->tasks.push_back(std::move(task));
      Unfinished::add(1);
    }
    state_->changed.notify_all();
  }

  /// Waits until the tasks of all lanes have ended, also of lanes that are gone, and what they held
  /// is freed, for at most `limit`. Returns whether that is so.
  static bool drain_all(std::chrono::milliseconds limit) { return Unfinished::wait(limit); }

  /// Waits until all tasks have ended, for at most `limit`. Returns whether they have.
  bool drain(std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(state_->mutex);
    return state_->changed.wait_for(
        lock, limit, [&] { return state_->tasks.empty() && state_->idle == state_->threads; });
  }

 private:
  static constexpr std::chrono::seconds kIdle{5};

  /// How many tasks of all lanes wait, run or are being freed. A task that starts another one is
  /// counted until that one is.
  class Unfinished {
   public:
    static void add(int change) {
      const std::lock_guard<std::mutex> lock(mutex());
      count() += change;
      if (count() == 0) changed().notify_all();
    }

    static bool wait(std::chrono::milliseconds limit) {
      std::unique_lock<std::mutex> lock(mutex());
      return changed().wait_for(lock, limit, [] { return count() == 0; });
    }

   private:
    // Threads may outlive static objects.
    static std::mutex& mutex() {
      static auto* const one = new std::mutex;
      return *one;
    }

    static std::condition_variable& changed() {
      static auto* const one = new std::condition_variable;
      return *one;
    }

    static int& count() {
      static int tasks = 0;
      return tasks;
    }
  };

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;
    std::size_t threads = 0;
    std::size_t idle = 0;
    const char* name = "";
    bool one_thread = true;
  };

  static void work(const std::shared_ptr<State>& state) {
    c10::setThreadName(state->name);
    std::unique_lock<std::mutex> lock(state->mutex);
    while (true) {
      ++state->idle;
      state->changed.notify_all();
      const bool got = state->changed.wait_for(lock, kIdle, [&] { return !state->tasks.empty(); });
      --state->idle;
      if (!got) break;
      Task task = std::move(state->tasks.front());
      state->tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it holds is freed without the lock
      Unfinished::add(-1);
      lock.lock();
    }
    --state->threads;
    state->changed.notify_all();
  }

  std::shared_ptr<State> state_;
};

}  // namespace backendkit
