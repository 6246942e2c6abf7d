// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <backendkit/device/lost_work.h>
#include <backendkit/distributed/staged_group.h>

namespace backendkit {

/// The driver's collectives of a process group. The first collective makes the communicator, on the
/// device of its tensors, together with the other ranks. The work runs on a stream of the group,
/// and `wait` lets streams wait, not the host.
///
/// A watcher looks after work that has not completed. If the driver reports an error, or a
/// collective takes longer than its time-out, it aborts the communicator: streams go on, and
/// everything that waits for the group or the device throws until the group is destroyed.
class DriverGroup : public std::enable_shared_from_this<DriverGroup> {
 public:
  using Work = StagedWork;
  using WorkPtr = c10::intrusive_ptr<Work>;
  using Tensors = std::vector<at::Tensor>;

  /// What the driver's functions need beside the data.
  struct Place {
    const DriverCollectives& driver;
    CommunicatorHandle communicator;
    StreamHandle stream;
    int device;
  };

  /// `timeout` is for collectives that have none of their own.
  DriverGroup(std::shared_ptr<StagedGroup> group, std::chrono::milliseconds timeout)
      : group_(std::move(group)), timeout_(timeout) {}

  DriverGroup(const DriverGroup&) = delete;
  DriverGroup& operator=(const DriverGroup&) = delete;

  ~DriverGroup() { destroy(communicator_); }

  /// Nobody starts collectives any more: the communicator is freed now, or when its work has
  /// completed.
  void close() noexcept {
    if (device_facts().forked()) return;
    CommunicatorHandle gone = nullptr;
    try {
      const std::lock_guard<std::mutex> lock(watching_);
      closed_ = true;
      forget_completed();
      if (pending_.empty() && !aborts_) std::swap(gone, communicator_);
    } catch (const c10::Error&) {
      return;  // the watcher finds it too
    }
    destroy(gone);
  }

  /// Whether the driver does collectives of these tensors. The first call for tensors that it could
  /// do waits for the other ranks.
  bool can_use(const Tensors& tensors) {
    if (device_facts().collectives == nullptr) return false;
    group_->check_open();
    const auto fits = [](const at::Tensor& one) {
      return one.defined() && one.device().type() == kDeviceType && one.layout() == at::kStrided &&
             !one.is_conj() && !one.is_neg();
    };
    return std::all_of(tensors.begin(), tensors.end(), fits) &&
           std::all_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor& one) { return is_at(one.device()); });
  }

  /// Queues a collective: `launch(place)` calls the driver, with the group's stream as the current
  /// one. Returns null if `launch` returns false.
  template <class Launch>
  WorkPtr run(c10d::OpType type, const char* title, const Tensors& inputs, Tensors outputs,
              std::chrono::milliseconds timeout, const Launch& launch) {
    const std::lock_guard<std::mutex> lock(launching_);
    check();
    const c10::Stream stream = *stream_;
    StreamPoint(device_guard().getStream(stream.device())).block(stream);
    // First: a call that throws may have begun its work.
    for (const Tensors* const all : {&inputs, static_cast<const Tensors*>(&outputs)}) {
      for (const at::Tensor& one : *all) {
        device_guard().recordDataPtrOnStream(one.storage().data_ptr(), stream);
      }
    }
    const auto allowed = timeout > std::chrono::milliseconds::zero() ? timeout : timeout_;
    WorkPtr work;
    try {
      const c10::StreamGuard guard(stream);
      const at::NoGradGuard no_gradient;
      StreamHandle const handle = device_facts().handle(stream.device_index(), stream.id());
      if (!launch(Place{driver(), communicator_, handle, stream.device_index()})) return {};
      work = group_->work(type, title, inputs, std::move(outputs));
    } catch (const c10::Error&) {
      watch({}, c10::str(group_->name(), ":", title), StreamPoint(stream), allowed);
      throw;
    }
    const StreamPoint end(stream);
    work->complete(Work::End{stream, end}, nullptr);
    watch(c10::weak_intrusive_ptr<Work>(work), work->name(), end, allowed);
    return work;
  }

  /// Until what runs has completed or failed.
  void wait() { group_->watchers().drain(std::chrono::hours(24 * 365)); }

  /// Ends what runs, as after a time-out.
  void abort(const std::string& why) { fail(why); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kInterval{20};
  static constexpr std::size_t kBytesOfId = 1024;
  enum Answer : std::uint8_t { kNothing, kId, kFailed };

  /// Does not keep the tensors: to free them, a thread may have to wait for another one that waits
  /// for the device, and so for the watcher.
  struct Pending {
    std::optional<c10::weak_intrusive_ptr<Work>> work;  ///< nothing if the call has thrown
    std::string name;
    StreamPoint end;
    Clock::time_point deadline;
    std::chrono::milliseconds timeout;
  };

  static const DriverCollectives& driver() { return *device_facts().collectives; }
  c10::Device device() const { return stream_->device(); }

  /// Whether the group has a communicator, which is for this device.
  bool is_at(const c10::Device& where) {
    const std::lock_guard<std::mutex> lock(making_);
    check();
    if (!asked_) make(where);
    if (communicator_ == nullptr) return false;
    TORCH_CHECK_VALUE(where == device(), "the collectives of the process group ", group_->name(),
                      " are those of ", device(), ", where its first one was, not of ", where);
    return true;
  }

  /// Rank 0 tells the others the id through the host, in order with the group's other collectives.
  /// Either all ranks get a communicator, or none.
  void make(const c10::Device& where) {
    stream_ = device_guard().getStreamFromGlobalPool(where, true);
    auto call = std::make_shared<StagedCall>();
    CommunicatorHandle made = nullptr;
    const auto run = [this, where, &made](c10d::Backend& host) {
      const std::string id = shared_id(host);
      std::exception_ptr why;
      try {
        if (!id.empty())
          made = driver().create(id, host.getRank(), host.getSize(), where.index(), timeout_);
      } catch (const c10::Error&) {
        why = std::current_exception();
      }
      if (!id.empty()) check_all(host, made, where.index(), why);
      return StagedCall::Begun{};
    };
    call->step({}, run, {});
    try {
      group_->collective(c10d::OpType::BROADCAST, "create_communicator", {}, call)
          ->wait_on_host(kNoTimeout);
    } catch (const c10::Error&) {
      const std::lock_guard<std::mutex> lock(watching_);
      failed_ = std::current_exception();  // of this call, and of all that follow
      throw;
    }
    const std::lock_guard<std::mutex> lock(watching_);
    communicator_ = made;
    asked_ = true;
  }

  /// Throws `why`, or if another rank has no communicator; this rank's is freed then.
  static void check_all(c10d::Backend& host, CommunicatorHandle made, int device,
                        std::exception_ptr why) {
    std::vector<at::Tensor> count{at::empty({1}, at::kInt).fill_(made == nullptr ? 0 : 1)};
    host.allreduce(count, {})->wait();
    if (count[0].item().toInt() == host.getSize()) return;
    if (made != nullptr) driver().destroy(made, device);
    if (why) std::rethrow_exception(why);
    TORCH_CHECK_WITH(DistBackendError, false, "another rank could not make a communicator");
  }

  static std::string shared_id(c10d::Backend& host) {
    at::Tensor message = at::empty({static_cast<std::int64_t>(kBytesOfId)}, at::kByte).zero_();
    auto* const bytes = message.mutable_data_ptr<std::uint8_t>();
    std::exception_ptr why;
    if (host.getRank() == 0) {
      try {
        const std::string id = driver().id();
        bytes[0] = id.empty() ? kNothing : kId;
        bytes[1] = static_cast<std::uint8_t>(id.size() & 0xFF);
        bytes[2] = static_cast<std::uint8_t>(id.size() >> 8);
        std::memcpy(bytes + 3, id.data(), id.size());
      } catch (const c10::Error&) {
        why = std::current_exception();  // after the others know
        bytes[0] = kFailed;
      }
    }
    std::vector<at::Tensor> messages{message};
    host.broadcast(messages, {})->wait();
    if (why) std::rethrow_exception(why);
    TORCH_CHECK_WITH(DistBackendError, bytes[0] != kFailed,
                     "the driver of rank 0 could not make a communicator");
    const std::size_t size = bytes[1] | static_cast<std::size_t>(bytes[2]) << 8;
    return {reinterpret_cast<const char*>(bytes + 3), size};
  }

  void destroy(CommunicatorHandle communicator) noexcept {
    if (communicator == nullptr || device_facts().forked()) return;
    driver().destroy(communicator, device().index());
    if (is_lost_) LostWork::remove();
  }

  void forget_completed() {
    while (!pending_.empty() && pending_.front().end.passed()) pending_.pop_front();
  }

  void check() {
    const std::lock_guard<std::mutex> lock(watching_);
    if (failed_) std::rethrow_exception(failed_);
  }

  void watch(std::optional<c10::weak_intrusive_ptr<Work>> work, std::string name,
             const StreamPoint& end, std::chrono::milliseconds timeout) {
    const std::lock_guard<std::mutex> lock(watching_);
    pending_.push_back({std::move(work), std::move(name), end, Clock::now() + timeout, timeout});
    if (watches_) return;
    watches_ = true;
    group_->watchers().run([self = this->shared_from_this()] { self->look(); });
  }

  /// Runs until no work is pending.
  void look() {
    while (true) {
      if (const std::optional<std::string> why = look_once()) return fail(*why);
      {
        const std::lock_guard<std::mutex> lock(watching_);
        if (pending_.empty()) {
          watches_ = false;
          return;
        }
      }
      std::this_thread::sleep_for(kInterval);
    }
  }

  /// Forgets what has completed; returns why the rest cannot go on.
  std::optional<std::string> look_once() {
    try {
      const std::lock_guard<std::mutex> lock(watching_);
      forget_completed();
      if (pending_.empty()) return std::nullopt;
      const std::string error = driver().error(communicator_, device().index());
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

  void fail(const std::string& why) {
    if (device_facts().forked()) return;
    std::deque<Pending> pending;
    std::exception_ptr cause;
    {
      const std::lock_guard<std::mutex> lock(watching_);
      watches_ = false;
      if (failed_ || communicator_ == nullptr) return;
      forget_completed();
      aborts_ = true;
      pending.swap(pending_);
      const std::string what = pending.empty() ? group_->name() : pending.front().name;
      const std::string text =
          c10::str(what, " failed on rank ", group_->rank(), " of ", group_->size(), ": ", why);
      cause = failed_ = std::make_exception_ptr(
          c10::DistBackendError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, text));
      if (!pending.empty()) {
        LostWork::add(text);  // before streams go on
        // A program that destroys the group later knows of it.
        is_lost_ = !closed_;
      }
    }
    driver().abort(communicator_, device().index());
    for (const Pending& one : pending) {
      const WorkPtr work = one.work ? one.work->lock() : WorkPtr();
      if (work) work->fail(cause);
    }
    const std::lock_guard<std::mutex> lock(watching_);
    aborts_ = false;
  }

  std::shared_ptr<StagedGroup> group_;
  std::chrono::milliseconds timeout_;
  std::mutex making_;
  bool asked_ = false;
  CommunicatorHandle communicator_ = nullptr;
  std::optional<c10::Stream> stream_;
  std::mutex launching_;  ///< all ranks queue collectives in one order
  std::mutex watching_;   ///< for those below
  std::deque<Pending> pending_;
  bool watches_ = false;
  bool aborts_ = false;
  bool closed_ = false;
  bool is_lost_ = false;
  std::exception_ptr failed_;
};

}  // namespace backendkit
