// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/lane.h>
#include <backendkit/distributed/staged_buffer.h>
#include <backendkit/distributed/staged_call.h>
#include <backendkit/distributed/staged_work.h>

namespace backendkit {

/// What all calls of a process group share. It lives as long as the group or a call that runs.
class StagedGroup : public std::enable_shared_from_this<StagedGroup> {
 public:
  using Call = StagedCall;
  using Work = StagedWork;
  using WorkPtr = c10::intrusive_ptr<Work>;

  /// `host` is the group's part for the CPU, for nobody else's use.
  StagedGroup(std::string name, c10::intrusive_ptr<c10d::Backend> host)
      : host_(std::move(host)), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  c10d::Backend& host() { return *host_; }
  int rank() const { return host_->getRank(); }
  int size() const { return host_->getSize(); }

  /// Sets the host's time-out for later calls that have none of their own, in releases that can.
  void set_timeout(std::chrono::milliseconds timeout) {
    set_timeout_of(*host_, timeout);
    timeout_ = timeout;
  }

  /// The devices of all tensors so far.
  std::set<c10::DeviceIndex> devices() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return devices_;
  }

  /// Starts a collective; the collectives of a group run in the order of these calls.
  WorkPtr collective(c10d::OpType type, const char* title, std::vector<at::Tensor> outputs,
                     std::shared_ptr<Call> call) {
    const WorkPtr work = begin(type, title, std::move(outputs), call, ++collectives_started_);
    collectives_.run([group = this->shared_from_this(), call, work] {
      group->end(call, work, [&] {
        call->run(*group->host_);
        return kNoSource;
      });
    });
    return work;
  }

  /// Starts a message to or from one rank. Messages start in the order of these calls, and wait for
  /// their partners independently of each other and of collectives. `post` starts the host's
  /// message.
  template <class Post>
  WorkPtr message(c10d::OpType type, const char* title, std::vector<at::Tensor> outputs,
                  std::shared_ptr<Call> call, Post post) {
    const WorkPtr work = begin(type, title, std::move(outputs), call, 0);
    messages_.run([group = this->shared_from_this(), call, work, type, post = std::move(post)] {
      group->guarded(call, work, [&] {
        call->wait_for_inputs();
        const auto posted = post(*group->host_);
        group->waiters_.run([group, call, work, posted, type] {
          group->end(call, work, [&] {
            posted->wait(group->timeout_);  // Gloo's messages keep its first time-out
            call->bring_outputs();
            return type == c10d::OpType::RECVANYSOURCE ? posted->sourceRank() : kNoSource;
          });
        });
      });
    });
    return work;
  }

  /// A work for a collective, or for messages, that the driver does.
  WorkPtr work(c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
               std::vector<at::Tensor> outputs) {
    const bool is_message =
        type == c10d::OpType::SEND || type == c10d::OpType::RECV || type == c10d::OpType::COALESCED;
    return make(type, title, inputs, std::move(outputs), is_message ? 0 : ++collectives_started_);
  }

  /// The number of collectives that this rank has started.
  std::uint64_t collectives_started() const { return collectives_started_; }

  void check_open() const {
    device_facts().check_not_forked();
    TORCH_CHECK(!closed_, "the process group ", name_, " was ", aborted_ ? "aborted" : "destroyed");
  }

  /// From now on, calls throw.
  void close() { closed_ = true; }

  /// Makes what runs fail now, and later calls throw. A thread that waits for the host's collective
  /// does so until that ends, of which nothing comes to the device then. In a forked child nothing
  /// runs.
  void abort() {
    if (device_facts().forked()) {
      close();
      return;
    }
    std::unordered_map<WorkPtr, std::shared_ptr<Call>> running;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aborted_ = true;
      closed_ = true;
      running.swap(running_);
    }
    for (const auto& [work, call] : running) {
      call->drop_outputs();
      fail(work);
    }
  }

  /// A work that ends when all of these have ended.
  WorkPtr joined(std::vector<WorkPtr> works) {
    std::vector<at::Tensor> outputs;
    for (const WorkPtr& one : works) {
      for (const at::Tensor& output : one->result()) outputs.push_back(output);
    }
    const std::vector<at::Tensor> inputs = outputs;
    auto all =
        c10::make_intrusive<Work>(rank(), c10d::OpType::COALESCED, name_ + ":coalesced", inputs,
                                  std::move(outputs), waiters_, collectives_started_);
    if (works.empty()) {  // as when PyTorch aborts several groups in one batch
      all->complete({}, nullptr);
      return all;
    }
    all->consists_of(works);
    waiters_.run([group = this->shared_from_this(), all, works = std::move(works)] {
      group->guarded(nullptr, all, [&] {
        Work::Ends ends;
        for (const WorkPtr& one : works) {
          one->wait_on_host(kNoTimeout);
          for (const Work::End& end : one->ends()) ends.push_back(end);
        }
        all->complete(std::move(ends), nullptr);
      });
    });
    return all;
  }

 private:
  static constexpr int kNoSource = -1;
  static constexpr const char* kAborted = "the process group was aborted";

  template <class Host>
  static void set_timeout_of(Host& host, std::chrono::milliseconds timeout) {
    if constexpr (requires { host.setTimeout(timeout); }) host.setTimeout(timeout);
  }

  WorkPtr begin(c10d::OpType type, const char* title, std::vector<at::Tensor> outputs,
                const std::shared_ptr<Call>& call, std::uint64_t number) {
    auto work = make(type, title, call->inputs(), std::move(outputs), number);
    if (const auto device = call->device()) call->start(streams(*device));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!aborted_) {
        running_.emplace(work, call);
        return work;
      }
    }
    fail(work);  // aborted while the call started
    return work;
  }

  WorkPtr make(c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
               std::vector<at::Tensor> outputs, std::uint64_t number) {
    check_open();
    if (const auto& tensors = inputs.empty() ? outputs : inputs; !tensors.empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      devices_.insert(tensors[0].get_device());
    }
    return c10::make_intrusive<Work>(rank(), type, name_ + ":" + title, inputs, std::move(outputs),
                                     waiters_, number);
  }

  static c10::Stream new_stream(const c10::Device& where) {
    return device_facts().has_streams ? device_guard().getStreamFromGlobalPool(where, true)
                                      : device_guard().getDefaultStream(where);
  }

  StagingStreams streams(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(device);
    if (found != streams_.end()) return found->second;
    const c10::Device where(kDeviceType, device);
    return streams_.emplace(device, StagingStreams{new_stream(where), new_stream(where)})
        .first->second;
  }

  /// Ends a call with what `run` does, which returns the source of a message.
  template <class Run>
  void end(const std::shared_ptr<Call>& call, const WorkPtr& work, const Run& run) {
    guarded(call, work, [&] {
      const int source = run();
      auto ended = call->finish();
      if (aborted_) throw std::runtime_error(kAborted);  // outputs may have been dropped
      work->complete(std::move(ended), nullptr, source);
      const std::lock_guard<std::mutex> lock(mutex_);
      running_.erase(work);
    });
  }

  /// Makes what `run` throws the end of the work. Errors of Gloo get the name of the group; those
  /// of PyTorch and the driver have their own classes. What `run` writes is no change that autograd
  /// or inference mode knows of, as with Gloo and the driver, which write to memory.
  template <class Run>
  void guarded(const std::shared_ptr<Call>& call, const WorkPtr& work, const Run& run) {
    std::exception_ptr why;
    try {
      if (aborted_) throw std::runtime_error(kAborted);
      const at::AutoDispatchBelowADInplaceOrView below;
      run();
      return;
    } catch (const c10::Error&) {
      why = std::current_exception();
    } catch (const std::exception& error) {
      why = failure(*work, error.what());
    }
    {
      // Gloo and the device may still use this memory.
      const std::lock_guard<std::mutex> lock(mutex_);
      if (call) failed_.push_back(call);
      running_.erase(work);
    }
    work->complete({}, why);
  }

  void fail(const WorkPtr& work) const { work->complete({}, failure(*work, kAborted)); }

  std::exception_ptr failure(const Work& work, const char* why) const {
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
        c10::str(work.name(), " failed on rank ", rank(), " of ", size(), ": ", why)));
  }

  std::vector<std::shared_ptr<Call>> failed_;  // outlives `host_`
  c10::intrusive_ptr<c10d::Backend> host_;
  std::string name_;
  Lane collectives_{"pt_ccl", true};
  Lane messages_{"pt_ccl_messages", true};
  Lane waiters_{"pt_ccl_waiters", false};
  std::mutex mutex_;
  std::set<c10::DeviceIndex> devices_;
  std::unordered_map<c10::DeviceIndex, StagingStreams> streams_;
  std::atomic<std::uint64_t> collectives_started_{0};
  std::unordered_map<WorkPtr, std::shared_ptr<Call>> running_;
  std::atomic<std::chrono::milliseconds> timeout_{kNoTimeout};  ///< if it was set later
  std::atomic<bool> closed_{false};
  std::atomic<bool> aborted_{false};
};

}  // namespace backendkit
