// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  /// Where the outputs of a collective become ready.
  struct End {
    c10::Stream stream;
    StreamPoint point;
  };

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
    return completed_ && (!end_ || device_facts().forked() || end_->point.passed());
  }

  const std::string& name() const { return name_; }

  std::optional<End> end() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return end_;
  }

  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  std::uint64_t getSequencenumber() const override { return number_; }

  void synchronize() override {
    device_facts().check_not_forked();
    if (const auto end = this->end()) {
      end->point.block(device_guard().getStream(end->stream.device()));
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
    const bool forever = timeout <= std::chrono::milliseconds::zero();
    const auto until = std::chrono::steady_clock::now() + timeout;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto done = [&] { return completed_; };
    if (forever) {
      cv_.wait(lock, done);
    } else if (!cv_.wait_until(lock, until, done)) {
      raise_late(timeout);
    }
    const auto end = end_;
    lock.unlock();
    if (!forever && end) {
      while (!end->point.passed()) {
        if (std::chrono::steady_clock::now() >= until) raise_late(timeout);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      end->point.wait();  // throws if it has come because of an abort
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
      if (completed_) mark(future_);
    }
    return future_;
  }

  /// Ends the work, unless it has ended: `end` if there are outputs on a device, `exception` if it
  /// failed.
  void complete(std::optional<End> end, std::exception_ptr exception, int source = -1) {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (std::exchange(ended_, true)) return;
      end_ = std::move(end);
      source_ = source;
    }
    finish(exception);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      future = future_;
    }
    if (!future || future->completed()) return;  // made after `finish`, and complete from the start
    const auto self = c10::intrusive_ptr<StagedWork>::reclaim_copy(this);
    callbacks_.run([self, future] { self->mark(future); });
  }

  /// With the last owner go the tensors, though the watcher of the driver's collectives still
  /// knows the work.
  void release_resources() override {
    outputs_.clear();
    future_.reset();
  }

  /// Makes later waits throw: the results of a complete work never came.
  void fail(std::exception_ptr why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    exception_ = std::move(why);
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

  void mark(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
    if (exception_) {
      future->setErrorIfNeeded(exception_);
      return;
    }
    if (!futures_know_streams()) {
      future->markCompleted(c10::IValue(outputs_),
                            std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>());
      return;
    }
    const c10::OptionalStreamGuard guard(end_ ? std::optional(end_->stream) : std::nullopt);
    future->markCompleted(c10::IValue(outputs_));
  }

  std::string name_;
  std::vector<at::Tensor> outputs_;
  Lane callbacks_;
  std::uint64_t number_;
  bool ended_ = false;
  int source_ = -1;
  std::optional<End> end_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace backendkit
