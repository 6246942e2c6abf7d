// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <backendkit/distributed/apart.h>
#include <backendkit/distributed/driver_data.h>

namespace backendkit {

/// Messages between two ranks that the driver does: those without a tag, in a group whose ranks all
/// have a `device_id`. All others go through the host.
class DriverMessages : private DriverData {
 public:
  using WorkPtr = DriverGroup::WorkPtr;
  using Op = c10d::OpType;

  /// A tensor for a rank, or from one.
  struct Message {
    at::Tensor tensor;
    int peer;
    bool sends;
  };

  DriverMessages(DriverGroup& driver, std::shared_ptr<StagedGroup> group)
      : driver_(driver), group_(std::move(group)) {}

  DriverMessages(const DriverMessages&) = delete;
  DriverMessages& operator=(const DriverMessages&) = delete;
  ~DriverMessages() { drop_batch(); }

  /// Whether the driver does a message, which then has no tag.
  bool can_do(const at::Tensor& tensor, int tag) {
    constexpr int kNoTag = 0;
    return tag == kNoTag && driver_.can_send({tensor});
  }

  /// Queues a message that the driver can do, within a batch at its end.
  WorkPtr start(const Message& message) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (batch_) {
        const Tensors tensors{message.tensor};
        batch_->push_back({message, StreamPoint(device_guard().getStream(message.tensor.device())),
                           group_->work(type(message), title(message), tensors, tensors)});
        batch_->back().work->wait_for_batch(true);
        return batch_->back().work;
      }
    }
    return run({{message, {}, {}}}, type(message), title(message));
  }

  /// A batch that was never ended has no messages.
  void begin_batch() {
    drop_batch();
    const std::lock_guard<std::mutex> lock(mutex_);
    batch_.emplace();
  }

  /// Queues the messages since `begin_batch` as one group of the driver. Returns its work, or null
  /// if there are none.
  WorkPtr end_batch() {
    const std::vector<Late> batch = take_batch();
    if (batch.empty()) return {};
    try {
      return run(batch, Op::COALESCED, "messages");
    } catch (const c10::Error&) {
      fail(batch, std::current_exception());
      throw;
    }
  }

  /// Makes the works of a batch fail that will not be ended.
  void drop_batch() {
    const std::vector<Late> batch = take_batch();
    if (batch.empty()) return;
    const std::string why = group_->name() + ": the messages of a batch were never sent: no end";
    fail(batch, std::make_exception_ptr(c10::DistBackendError(
                    {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, why)));
  }

 private:
  /// A message of a batch, after what its stream had to do.
  struct Late {
    Message message;
    StreamPoint ready;
    WorkPtr work;
  };

  std::vector<Late> take_batch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Late> batch = batch_ ? std::move(*batch_) : std::vector<Late>{};
    batch_.reset();
    for (const Late& one : batch) one.work->wait_for_batch(false);
    return batch;
  }

  static void fail(const std::vector<Late>& batch, const std::exception_ptr& why) {
    for (const Late& one : batch) one.work->complete({}, why);
  }

  static Op type(const Message& message) { return message.sends ? Op::SEND : Op::RECV; }
  static const char* title(const Message& message) { return message.sends ? "send" : "recv"; }

  WorkPtr run(const std::vector<Late>& messages, Op type, const char* title) {
    Tensors all;
    Tensors sent;
    std::vector<WorkPtr> works;
    for (const Late& one : messages) {
      if (one.work) works.push_back(one.work);
      all.push_back(one.message.tensor);
      if (one.message.sends) sent.push_back(one.message.tensor);
    }
    const auto launch = [&](const Place& place) {
      move(place, messages);
      return true;
    };
    return driver_.run(type, title, sent.empty() ? all : sent, all, kNoTimeout, launch, works);
  }

  static void move(const Place& place, const std::vector<Late>& messages) {
    Tensors data;
    Tensors received;
    for (const Late& one : messages) {
      const at::Tensor& tensor = one.message.tensor;
      one.ready.block(device_guard().getStream(tensor.device()));
      data.push_back(one.message.sends ? dense(tensor) : room(tensor));
      if (!one.message.sends) received.push_back(data.back());
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (messages[i].message.sends) data[i] = apart(data[i], received);
    }
    in_group(place, [&] {
      for (std::size_t i = 0; i < data.size(); ++i) {
        const auto& pass = messages[i].message.sends ? send : receive;
        pass(place, whole(data[i]), messages[i].message.peer);
      }
    });
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (!messages[i].message.sends) bring(place, messages[i].message.tensor, data[i]);
    }
  }

  DriverGroup& driver_;
  std::shared_ptr<StagedGroup> group_;
  std::mutex mutex_;
  std::optional<std::vector<Late>> batch_;  ///< between its begin and its end
};

}  // namespace backendkit
