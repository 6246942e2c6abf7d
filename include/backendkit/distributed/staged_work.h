// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <c10/core/StreamGuard.h>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/lane.h>
#include <backendkit/distributed/stream_point.h>

namespace backendkit {

/// c10d::Work of a staged collective. `wait` lets the host wait until the collective is done on the
/// host, and then lets the current stream, not the host, wait for the copies to the device.
class StagedWork final : public c10d::Work {
 public:
  /// Where outputs of a collective become ready.
  struct End {
    c10::Stream stream;
    StreamPoint point;
  };
  using Ends = std::vector<End>;

  /// A profile shows `name`, and the shapes of `inputs`.
  StagedWork(int rank, c10d::OpType type, std::string name, const std::vector<at::Tensor>& inputs,
             std::vector<at::Tensor> outputs, Lane callbacks, std::uint64_t number)
      : c10d::Work(rank, type, name.c_str(), inputs),
        name_(std::move(name)),
        outputs_(std::move(outputs)),
        callbacks_(std::move(callbacks)),
        number_(number) {}

  bool isCompleted() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto passed = [](const End& end) { return end.point.passed(); };
    return completed_ &&
           (device_facts().forked() || std::all_of(ends_.begin(), ends_.end(), passed));
  }

  const std::string& name() const { return name_; }

  Ends ends() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ends_;
  }

  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  std::uint64_t getSequencenumber() const override { return number_; }

  /// For a work that has ended, as c10d::Work says: Python calls this with its lock held, for which
  /// other works of the group may wait.
  void synchronize() override {
    device_facts().check_not_forked();
    for (const End& end : ends()) {
      end.point.block(device_guard().getStream(end.stream.device()));
    }
  }

  /// Lets the current stream wait for the outputs. With a `timeout`, the host waits too, and it is
  /// a DistBackendError if they take longer. Throws what the collective threw.
  bool wait(std::chrono::milliseconds timeout) override {
    wait_on_host(timeout);
    synchronize();
    return true;
  }

  /// Like `wait`, but no stream waits.
  void wait_on_host(std::chrono::milliseconds timeout) {
    device_facts().check_not_forked();
    TORCH_CHECK(
        !waits_for_batch_, name_, " on rank ", rank_,
        " begins when its batch ends, and cannot be awaited before: use `isend` and `irecv` "
        "in a batch, and wait after it");
    const bool forever = timeout <= std::chrono::milliseconds::zero();
    const auto until = std::chrono::steady_clock::now() + timeout;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto done = [&] { return completed_; };
    if (forever) {
      cv_.wait(lock, done);
    } else if (!cv_.wait_until(lock, until, done)) {
      raise_late(timeout);
    }
    const Ends ends = forever ? Ends{} : ends_;
    lock.unlock();
    for (const End& end : ends) {
      while (!end.point.passed()) {
        if (std::chrono::steady_clock::now() >= until) raise_late(timeout);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      end.point.wait();  // throws if it has come because of an abort
    }
    lock.lock();
    if (exception_) std::rethrow_exception(exception_);
  }

  /// In releases that have it: the current stream waits.
  void blockCurrentStream() { wait(kNoTimeout); }

  /// A future of the list of outputs. Its callbacks run on a thread of the group, and may start
  /// other collectives and wait for them.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!future_) {
      std::vector<c10::Device> devices;
      if (futures_know_streams() && !outputs_.empty()) devices.push_back(outputs_.front().device());
      future_ = c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()), std::move(devices));
      if (completed_) mark(future_, exception_);
    }
    return future_;
  }

  /// Whether waits throw, because the work is a message of a batch that has not begun.
  void wait_for_batch(bool waits) { waits_for_batch_ = waits; }

  /// Makes this work fail if one of its parts does, and keeps them for that.
  void consists_of(std::vector<c10::intrusive_ptr<StagedWork>> parts) {
    const auto self = c10::intrusive_ptr<StagedWork>::reclaim_copy(this);
    for (const auto& part : parts) {
      const std::lock_guard<std::mutex> lock(part->mutex_);
      part->wholes_.emplace_back(self);
    }
    parts_ = std::move(parts);
  }

  /// Ends the work, unless it has ended: `ends` if there are outputs on a device, `exception` if it
  /// failed.
  void complete(Ends ends, std::exception_ptr exception, int source = -1) {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (std::exchange(ended_, true)) return;
      ends_ = std::move(ends);
      source_ = source;
    }
    finish(exception);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!exception_) exception_ = failed_;
      future = future_;
    }
    if (!future || future->completed()) return;  // made after `finish`, and complete from the start
    const auto self = c10::intrusive_ptr<StagedWork>::reclaim_copy(this);
    callbacks_.run([self, future] { self->mark(future, self->exception()); });
  }

  /// With the last owner go the tensors, though the watcher of the driver's collectives still
  /// knows the work.
  void release_resources() override {
    outputs_.clear();
    future_.reset();
    parts_.clear();
  }

  /// Makes later waits throw: the results never came.
  void fail(const std::exception_ptr& why) {
    std::vector<c10::weak_intrusive_ptr<StagedWork>> wholes;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      failed_ = why;
      if (completed_) exception_ = why;
      wholes = wholes_;
    }
    for (const auto& whole : wholes) {
      if (const auto there = whole.lock()) there->fail(why);
    }
  }

 private:
  void raise_late(std::chrono::milliseconds timeout) const {
    C10_THROW_ERROR(DistBackendError, c10::str(name_, " on rank ", rank_, " is not done after ",
                                               timeout.count(), " ms"));
  }

  /// Whether PyTorch's futures can order the streams of the device.
  static bool futures_know_streams() {
    return device_facts().has_streams && device_facts().has_events;
  }

  void mark(const c10::intrusive_ptr<c10::ivalue::Future>& future,
            const std::exception_ptr& exception) const {
    if (exception) {
      future->setErrorIfNeeded(exception);
      return;
    }
    if (!futures_know_streams()) {
      future->markCompleted(c10::IValue(outputs_),
                            std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>());
      return;
    }
    const c10::OptionalStreamGuard guard(stream_after_ends());
    future->markCompleted(c10::IValue(outputs_));
  }

  /// A stream that has done its work when all outputs are ready; null if they are.
  std::optional<c10::Stream> stream_after_ends() const {
    if (ends_.empty()) return std::nullopt;
    if (ends_.size() == 1) return ends_[0].stream;
    const c10::Stream stream =
        device_guard().getStreamFromGlobalPool(ends_[0].stream.device(), true);
    for (const End& end : ends_) end.point.block(stream);
    return stream;
  }

  std::string name_;
  std::vector<at::Tensor> outputs_;
  Lane callbacks_;
  std::uint64_t number_;
  bool ended_ = false;
  int source_ = -1;
  Ends ends_;
  std::exception_ptr failed_;  ///< of `fail`
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<c10::intrusive_ptr<StagedWork>> parts_;
  std::vector<c10::weak_intrusive_ptr<StagedWork>> wholes_;
  std::atomic<bool> waits_for_batch_{false};
};

}  // namespace backendkit
