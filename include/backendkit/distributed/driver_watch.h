// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <backendkit/device/lost_work.h>
#include <backendkit/distributed/lane.h>
#include <backendkit/distributed/staged_work.h>

namespace backendkit {

/// Owns a communicator of the driver, and looks after its work on a thread of its own until the
/// work has completed. If the driver reports an error, or a collective takes longer than its
/// time-out, the communicator is aborted: streams go on, and everything that waits for the group or
/// a device throws until the group is destroyed. It needs no process group, so a group can end
/// before it.
class DriverWatch : public std::enable_shared_from_this<DriverWatch> {
 public:
  using WeakWork = c10::weak_intrusive_ptr<StagedWork>;

  /// `who` says which rank of which group this is, in errors.
  static std::shared_ptr<DriverWatch> make(CommunicatorHandle communicator, int device,
                                           std::string who) {
    auto made = std::shared_ptr<DriverWatch>(new DriverWatch(communicator, device, std::move(who)));
    const std::lock_guard<std::mutex> lock(mutex_of_all());
    std::erase_if(all(), [](const std::weak_ptr<DriverWatch>& one) { return one.expired(); });
    all().push_back(made);
    return made;
  }

  DriverWatch(const DriverWatch&) = delete;
  DriverWatch& operator=(const DriverWatch&) = delete;
  ~DriverWatch() { destroy(communicator_); }

  /// Only while the group is open.
  CommunicatorHandle communicator() const { return communicator_; }

  /// Throws the error with which the group has failed, if it has.
  void check() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
  }

  /// Looks after work that ends at a point of a stream; without a work if its call has thrown.
  void add(std::optional<WeakWork> work, std::string name, const StreamPoint& end,
           std::chrono::milliseconds timeout) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_) {  // while the driver was called
      lose();
      fail(work);
      return;
    }
    pending_.push_back({std::move(work), std::move(name), end, Clock::now() + timeout, timeout});
    if (looks_) return;
    looks_ = true;
    lane_.run([self = this->shared_from_this()] { self->look(); });
  }

  /// No work comes any more: the communicator is freed now, or when its work has completed.
  void close() noexcept {
    if (device_facts().forked()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      forget_loss();
    }
    try {
      free_if_idle();
    } catch (const c10::Error&) {  // of a question whether work has completed: `look` asks again
    }
  }

  /// Ends what runs, as after a time-out.
  void abort(const std::string& why) {
    if (device_facts().forked()) return;
    std::deque<Pending> pending;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failed_ || communicator_ == nullptr) return;
      try {
        forget_completed();
      } catch (const c10::Error&) {  // what cannot be asked has not completed
      }
      pending.swap(pending_);
      text_ =
          c10::str(pending.empty() ? "the process group" : pending.front().name, who_, ": ", why);
      failed_ = std::make_exception_ptr(
          c10::DistBackendError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, text_));
      if (!pending.empty()) lose();  // before streams go on
      aborts_ = true;
    }
    driver().abort(communicator_, device_);
    for (const Pending& one : pending) fail(one.work);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aborts_ = false;
    }
    free_if_idle();  // if it was closed meanwhile
  }

  /// Waits until the work of all communicators has completed or failed.
  static void wait_for_all() {
    std::vector<std::shared_ptr<DriverWatch>> open;
    {
      const std::lock_guard<std::mutex> lock(mutex_of_all());
      for (const std::weak_ptr<DriverWatch>& one : all()) {
        if (auto watch = one.lock()) open.push_back(std::move(watch));
      }
    }
    for (const auto& watch : open) watch->lane_.drain(std::chrono::hours(24 * 365));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kInterval{20};

  /// Does not keep the tensors: to free them, a thread may have to wait for another one that waits
  /// for the device, and so for this watch.
  struct Pending {
    std::optional<WeakWork> work;
    std::string name;
    StreamPoint end;
    Clock::time_point deadline;
    std::chrono::milliseconds timeout;
  };

  DriverWatch(CommunicatorHandle communicator, int device, std::string who)
      : communicator_(communicator), device_(device), who_(std::move(who)) {}

  static const DriverCollectives& driver() { return *device_facts().collectives; }

  /// Runs until no work is pending.
  void look() {
    while (true) {
      if (const std::optional<std::string> why = look_once()) abort(*why);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        looks_ = !pending_.empty();
        if (!looks_) break;
      }
      std::this_thread::sleep_for(kInterval);
    }
    free_if_idle();
  }

  /// Forgets what has completed; returns why the rest cannot go on.
  std::optional<std::string> look_once() {
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      forget_completed();
      if (pending_.empty()) return std::nullopt;
      const std::string error = driver().error(communicator_, device_);
      if (!error.empty()) return error;
      const auto late = std::find_if(pending_.begin(), pending_.end(), [](const Pending& one) {
        return Clock::now() > one.deadline;
      });
      if (late == pending_.end()) return std::nullopt;
      return c10::str("timed out after ", late->timeout.count(), " ms");
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
  }

  /// There are wrong results from now on, for good if the group was destroyed already: a program
  /// that destroys it later knows of them.
  void lose() {
    if (is_lost_) return;
    LostWork::add(text_);
    is_lost_ = !closed_;
  }

  void forget_loss() {
    if (std::exchange(is_lost_, false)) LostWork::remove();
  }

  void fail(const std::optional<WeakWork>& work) const {
    if (!work) return;
    if (const auto there = work->lock()) there->fail(failed_);
  }

  void forget_completed() {
    while (!pending_.empty() && pending_.front().end.passed()) pending_.pop_front();
  }

  void free_if_idle() {
    CommunicatorHandle gone = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      forget_completed();
      if (closed_ && pending_.empty() && !aborts_) std::swap(gone, communicator_);
    }
    destroy(gone);
  }

  void destroy(CommunicatorHandle communicator) noexcept {
    if (communicator == nullptr || device_facts().forked()) return;
    driver().destroy(communicator, device_);
    forget_loss();
  }

  static std::mutex& mutex_of_all() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }

  static std::vector<std::weak_ptr<DriverWatch>>& all() {
    static auto* const all = new std::vector<std::weak_ptr<DriverWatch>>;
    return *all;
  }

  CommunicatorHandle communicator_;
  const int device_;
  const std::string who_;
  Lane lane_{"pt_ccl_watch", true};
  std::mutex mutex_;
  std::deque<Pending> pending_;
  bool looks_ = false;
  bool aborts_ = false;
  bool closed_ = false;
  bool is_lost_ = false;
  std::exception_ptr failed_;
  std::string text_;  ///< of that error
};

}  // namespace backendkit
