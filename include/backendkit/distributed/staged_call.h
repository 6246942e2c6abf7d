// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/staged_buffer.h>
#include <backendkit/distributed/staged_work.h>
#include <backendkit/distributed/stream_point.h>

namespace backendkit {

/// The two streams of a group on one device: copies to the host and copies from it, which may run
/// at the same time. Without streams, both are the default one.
struct StagingStreams {
  c10::Stream to_host;
  c10::Stream from_host;
};

/// A collective on tensors of the device, made of collectives of the CPU: buffers, and steps that
/// begin and end in their order. While the host runs two of them, the device copies the inputs of
/// those after them and the outputs of those before them.
class StagedCall {
 public:
  using Buffer = StagedBuffer;

  /// Bytes of a buffer.
  struct Range {
    const Buffer* buffer;
    std::int64_t begin;
    std::int64_t end;
  };
  using Ranges = std::vector<Range>;

  static Range all(const Buffer& buffer) { return {&buffer, 0, buffer.bytes()}; }

  /// Adds a tensor whose values the call reads, writes, or both. All are on one device. The buffer
  /// lives as long as the call.
  const Buffer& read(const at::Tensor& tensor) { return add(tensor, true, false); }
  const Buffer& write(const at::Tensor& tensor) { return add(tensor, false, true); }
  const Buffer& change(const at::Tensor& tensor) { return add(tensor, true, true); }

  /// A collective that the CPU's group has begun, and what to do after it. `then` also keeps what
  /// the collective uses.
  struct Begun {
    c10::intrusive_ptr<c10d::Work> work;
    std::function<void()> then;
  };
  using Begin = std::function<Begun(c10d::Backend&)>;

  /// Adds a step: `begin` calls the CPU's group after `inputs` have come to the host; when its
  /// collective has ended, `outputs` go to the device.
  void step(Ranges inputs, Begin begin, Ranges outputs) {
    steps_.push_back({std::move(inputs), std::move(begin), std::move(outputs), {}});
  }

  std::optional<c10::DeviceIndex> device() const { return device_; }

  /// The tensors that the call reads, or, if there are none, those that it writes; for profiles.
  std::vector<at::Tensor> inputs() const {
    std::vector<at::Tensor> read;
    std::vector<at::Tensor> all;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      all.push_back(buffers_[i].tensor());
      if (reads_[i]) read.push_back(all.back());
    }
    return read.empty() ? all : read;
  }

  /// Starts the copies to the host, after what the current stream has to do now.
  void start(const StagingStreams& streams) {
    streams_ = streams;
    const StreamPoint now(device_guard().getStream(streams.to_host.device()));
    if (shared()) {
      for (Step& step : steps_) step.ready = now;
      return;
    }
    now.block(streams.from_host);
    now.block(streams.to_host);
    const c10::StreamGuard guard(streams.to_host);
    for (Step& step : steps_) {
      if (step.inputs.empty()) continue;
      for (const Range& range : step.inputs) range.buffer->to_host(range.begin, range.end);
      step.ready = StreamPoint(streams.to_host);
    }
  }

  /// Waits until the inputs of the only step are on the host.
  void wait_for_inputs() const { steps_.front().ready.wait(); }

  /// Runs all steps and starts the copies to the device. A step begins before the one before it has
  /// ended, so that the processes need not wait for each other between them.
  void run(c10d::Backend& host) {
    Begun last;
    const Step* step_of_last = nullptr;
    const auto end_last = [&] {
      if (step_of_last == nullptr) return;
      if (last.work) last.work->wait();
      const std::lock_guard<std::mutex> lock(writing_);
      if (drops_outputs_) return;
      if (last.then) last.then();
      from_host(*step_of_last);
    };
    for (const Step& step : steps_) {
      step.ready.wait();
      Begun begun = step.begin(host);
      end_last();
      last = std::move(begun);
      step_of_last = &step;
    }
    end_last();
  }

  /// From now on, nothing is written to the tensors, and no copy to the device starts.
  void drop_outputs() {
    const std::lock_guard<std::mutex> lock(writing_);
    drops_outputs_ = true;
  }

  /// Starts the copies of the only step's outputs.
  void bring_outputs() {
    const std::lock_guard<std::mutex> lock(writing_);
    if (!drops_outputs_) from_host(steps_.front());
  }

  /// Where the outputs become ready, or nothing if they are ready; call it after the copies to the
  /// device have started. Of dropped outputs, it says nothing.
  StagedWork::Ends finish() {
    const std::lock_guard<std::mutex> lock(writing_);
    if (!streams_ || drops_outputs_) return {};
    const c10::StreamGuard guard(streams_->from_host);
    bool uses_stream = false;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      uses_stream = (writes_[i] && buffers_[i].finish(streams_->from_host)) || uses_stream;
    }
    if (!uses_stream) return {};
    return {{streams_->from_host, StreamPoint(streams_->from_host)}};
  }

 private:
  struct Step {
    Ranges inputs;
    Begin begin;
    Ranges outputs;
    StreamPoint ready;
  };

  const Buffer& add(const at::Tensor& tensor, bool reads, bool writes) {
    TORCH_CHECK_VALUE(tensor.defined() && tensor.device().type() == kDeviceType,
                      "the tensors of this process group must be on ",
                      c10::DeviceTypeName(kDeviceType, true));
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "the tensors must be dense, not sparse");
    const c10::DeviceIndex device = tensor.device().index();
    TORCH_CHECK_VALUE(device_.value_or(device) == device,
                      "the tensors of one call must be on one device");
    device_ = device;
    const c10::DeviceGuard guard(tensor.device());
    reads_.push_back(reads);
    writes_.push_back(writes);
    return buffers_.emplace_back(tensor, reads);
  }

  void from_host(const Step& step) {
    if (step.outputs.empty()) return;
    const c10::StreamGuard guard(streams_->from_host);
    for (const Range& range : step.outputs) range.buffer->from_host(range.begin, range.end);
  }

  bool shared() const { return !buffers_.empty() && buffers_.front().is_shared(); }

  std::deque<Buffer> buffers_;  // a deque, because ranges point to them
  std::vector<bool> reads_;
  std::vector<bool> writes_;
  std::vector<Step> steps_;
  std::optional<c10::DeviceIndex> device_;
  std::optional<StagingStreams> streams_;  ///< once the call has started
  std::mutex writing_;  ///< held while outputs are written, and for what is below
  bool drops_outputs_ = false;
};

}  // namespace backendkit
