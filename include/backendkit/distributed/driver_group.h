// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/ScopeExit.h>

#include <backendkit/distributed/driver_watch.h>
#include <backendkit/distributed/staged_group.h>

namespace backendkit {

/// The driver's collectives of a process group. The first collective makes the communicator, on the
/// device of its tensors, together with the other ranks. The work runs on a stream of the group,
/// and `wait` lets streams wait, not the host.
class DriverGroup {
 public:
  using Work = StagedWork;
  using WorkPtr = c10::intrusive_ptr<Work>;
  using Tensors = std::vector<at::Tensor>;

  /// A result for a tensor that is not dense.
  struct LateResult {
    at::Tensor tensor;
    at::Tensor result;
  };

  /// What the driver's functions need beside the data.
  struct Place {
    const DriverCollectives& driver;
    CommunicatorHandle communicator;
    StreamHandle stream;
    int device;
    std::vector<LateResult>& late;  ///< copied after the driver's work
  };

  /// `timeout` is for collectives that have none of their own.
  DriverGroup(std::shared_ptr<StagedGroup> group, std::chrono::milliseconds timeout)
      : group_(std::move(group)), timeout_(timeout) {}

  DriverGroup(const DriverGroup&) = delete;
  DriverGroup& operator=(const DriverGroup&) = delete;

  ~DriverGroup() {
    if (watch_) watch_->close();
  }

  /// Whether the driver does collectives of these tensors. The first call for tensors that it could
  /// do waits for the other ranks.
  bool can_use(const Tensors& tensors) {
    group_->check_open();
    const auto fits = [](const at::Tensor& one) {
      return one.defined() && one.device().type() == kDeviceType && one.layout() == at::kStrided &&
             !one.is_conj() && !one.is_neg();
    };
    return std::all_of(tensors.begin(), tensors.end(), fits) &&
           std::all_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor& one) { return is_at(one.device()); });
  }

  /// Makes the communicator now, on the only device that the group is for. All ranks call this, or
  /// none. The driver, if it can, then also does messages between two of them.
  void connect(const c10::Device& where) {
    group_->check_open();
    does_messages_ = is_at(where) && driver().send != nullptr;
  }

  /// Whether the driver does messages of these tensors.
  bool can_send(const Tensors& tensors) { return does_messages_ && can_use(tensors); }

  /// Queues a collective: `launch(place)` calls the driver, with the group's stream as the current
  /// one. Returns null if `launch` returns false. Call it after `can_use`. The works `parts` end
  /// with it.
  template <class Launch>
  WorkPtr run(c10d::OpType type, const char* title, const Tensors& inputs, Tensors outputs,
              std::chrono::milliseconds timeout, const Launch& launch,
              const std::vector<WorkPtr>& parts = {}) {
    const std::lock_guard<std::mutex> lock(launching_);
    group_->check_open();
    watch_->check();
    const c10::Stream stream = *stream_;
    StreamPoint(device_guard().getStream(stream.device())).block(stream);
    // First: a call that throws may have begun its work.
    for (const Tensors* const all : {&inputs, static_cast<const Tensors*>(&outputs)}) {
      for (const at::Tensor& one : *all) {
        device_guard().recordDataPtrOnStream(one.storage().data_ptr(), stream);
      }
    }
    const auto allowed = timeout > std::chrono::milliseconds::zero() ? timeout : timeout_.load();
    std::vector<WorkPtr> works = parts;
    std::vector<LateResult> late;
    try {
      const c10::StreamGuard guard(stream);
      const at::AutoDispatchBelowADInplaceOrView below;  // as StagedGroup::guarded
      StreamHandle const handle = device_facts().handle(stream.device_index(), stream.id());
      if (!launch(Place{*device_facts().collectives, watch_->communicator(), handle,
                        stream.device_index(), late}))
        return {};
      works.push_back(group_->work(type, title, inputs, std::move(outputs)));
    } catch (const c10::Error&) {
      watch_->add(std::nullopt, c10::str(group_->name(), ":", title), StreamPoint(stream), allowed);
      throw;
    }
    try {
      const Work::End end{stream, StreamPoint(stream)};
      for (const WorkPtr& work : works) {
        watch_->add(DriverWatch::WeakWork(work), work->name(), end.point, allowed);
        if (late.empty()) work->complete({end}, nullptr);
      }
      if (!late.empty()) bring(works, end.point, std::move(late));
    } catch (const std::exception&) {  // such as no more threads
      for (const WorkPtr& work : works) work->complete({}, std::current_exception());
      throw;
    }
    return works.back();
  }

  /// For later collectives that have none of their own.
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  /// What the driver runs goes on, and ends; what failed counts no more. Call it when the group is
  /// closed.
  void close() {
    if (device_facts().forked()) return;
    const std::lock_guard<std::mutex> lock(launching_);
    if (const auto watch = made()) watch->close();
  }

  /// What the driver runs ends. Does nothing while the ranks connect, and does not wait for that.
  void abort() {
    if (const auto watch = made()) watch->abort("the process group was aborted");
  }

 private:
  static constexpr std::size_t kBytesOfId = 1024;
  enum Answer : std::uint8_t { kNothing, kId, kFailed };

  static const DriverCollectives& driver() { return *device_facts().collectives; }

  /// The watch of the communicator; null if there is none, as while the ranks connect.
  std::shared_ptr<DriverWatch> made() {
    const std::lock_guard<std::mutex> lock(made_);
    return watch_;
  }

  /// Copies results when the driver's work has completed, on a thread, because these copies let the
  /// host wait. The works end after that.
  void bring(std::vector<WorkPtr> works, const StreamPoint& ready, std::vector<LateResult> late) {
    if (!stream_of_results_) {
      stream_of_results_ = device_guard().getStreamFromGlobalPool(stream_->device(), true);
    }
    results_.run([watch = watch_, stream = *stream_of_results_, works = std::move(works), ready,
                  late = std::move(late)] {
      Work::Ends ends;
      std::exception_ptr why;
      try {
        ready.wait();
        watch->check();
        const c10::StreamGuard guard(stream);
        const at::AutoDispatchBelowADInplaceOrView below;  // as in `run`
        for (const LateResult& one : late) {
          one.tensor.copy_(one.result);
          device_guard().recordDataPtrOnStream(one.tensor.storage().data_ptr(), stream);
        }
        ends.push_back({stream, StreamPoint(stream)});
      } catch (const std::exception&) {
        why = std::current_exception();
      }
      for (const WorkPtr& work : works) work->complete(ends, why);
    });
  }

  /// Whether the group has a communicator, which is for this device.
  bool is_at(const c10::Device& where) {
    const std::lock_guard<std::mutex> lock(making_);
    if (failed_) std::rethrow_exception(failed_);
    if (!stream_) {
      stream_ = device_guard().getStreamFromGlobalPool(where, true);
      try {
        make(where);
      } catch (const c10::Error&) {
        failed_ = std::current_exception();  // of this call, and of all that follow
        throw;
      }
    }
    if (!watch_) return false;
    TORCH_CHECK_VALUE(where == stream_->device(), "the collectives of the process group ",
                      group_->name(), " are those of ", stream_->device(),
                      ", where its first one was, not of ", where);
    return true;
  }

  /// Rank 0 tells the others the id through the host, in order with the group's other collectives.
  /// Either all ranks get a communicator, or none.
  void make(const c10::Device& where) {
    auto call = std::make_shared<StagedCall>();
    // After an abort, the call may still run when this has returned.
    const auto made = std::make_shared<std::shared_ptr<DriverWatch>>();
    const auto run = [timeout = timeout_.load(), where, made](c10d::Backend& host) {
      const std::string id = shared_id(host);
      if (id.empty()) return StagedCall::Begun{};
      CommunicatorHandle communicator = nullptr;
      std::exception_ptr why;
      try {
        communicator = driver().create(id, host.getRank(), host.getSize(), where.index(), timeout);
      } catch (const c10::Error&) {
        why = std::current_exception();
      }
      check_all(host, communicator, where.index(), why);
      *made =
          DriverWatch::make(communicator, where.index(),
                            c10::str(" failed on rank ", host.getRank(), " of ", host.getSize()));
      return StagedCall::Begun{};
    };
    call->step({}, run, {});
    group_->collective(c10d::OpType::BROADCAST, "create_communicator", {}, call)
        ->wait_on_host(kNoTimeout);
    const std::lock_guard<std::mutex> lock(made_);
    watch_ = *made;
  }

  /// Throws `why`, or if another rank has no communicator; this rank's is freed then.
  static void check_all(c10d::Backend& host, CommunicatorHandle made, int device,
                        std::exception_ptr why) {
    auto owned = c10::make_scope_exit([&] {
      if (made != nullptr) driver().destroy(made, device);
    });
    std::vector<at::Tensor> count{at::empty({1}, at::kInt).fill_(made == nullptr ? 0 : 1)};
    host.allreduce(count, {})->wait();  // throws if a rank has gone
    if (count[0].item().toInt() == host.getSize()) {
      owned.release();
      return;
    }
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

  std::shared_ptr<StagedGroup> group_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::mutex making_;  ///< for those below
  std::optional<c10::Stream> stream_;
  std::shared_ptr<DriverWatch> watch_;  ///< changes with `made_`, too
  std::exception_ptr failed_;
  std::mutex made_;
  std::atomic<bool> does_messages_{false};
  std::mutex launching_;  ///< all ranks queue collectives in one order
  Lane results_{"pt_ccl_results", true};
  std::optional<c10::Stream> stream_of_results_;
};

}  // namespace backendkit
