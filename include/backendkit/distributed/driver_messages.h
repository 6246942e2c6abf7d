// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

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
        batch_->push_back({message, group_->work(type(message), title(message), tensors, tensors)});
        return batch_->back().work;
      }
    }
    return run({message}, type(message), title(message));
  }

  void begin_batch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    batch_.emplace();
  }

  /// Queues the messages since `begin_batch` as one group of the driver.
  void end_batch() {
    std::vector<Late> batch;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      batch.swap(batch_.value());
      batch_.reset();
    }
    if (batch.empty()) return;
    std::vector<Message> messages;
    for (const Late& one : batch) messages.push_back(one.message);
    std::optional<StagedWork::End> end;
    std::exception_ptr why;
    try {
      end = run(messages, Op::COALESCED, "messages")->end();
    } catch (const c10::Error&) {
      why = std::current_exception();
    }
    for (const Late& one : batch) one.work->complete(end, why);
    if (why) std::rethrow_exception(why);
  }

 private:
  struct Late {
    Message message;
    WorkPtr work;
  };

  static Op type(const Message& message) { return message.sends ? Op::SEND : Op::RECV; }
  static const char* title(const Message& message) { return message.sends ? "send" : "recv"; }

  WorkPtr run(const std::vector<Message>& messages, Op type, const char* title) {
    Tensors tensors;
    Tensors sent;
    for (const Message& one : messages) {
      tensors.push_back(one.tensor);
      if (one.sends) sent.push_back(one.tensor);
    }
    return driver_.run(type, title, sent.empty() ? tensors : sent, tensors, kNoTimeout,
                       [&](const Place& place) {
                         const Tensors data = all_dense(tensors);
                         in_group(place, [&] {
                           for (std::size_t i = 0; i < data.size(); ++i) {
                             const auto& move = messages[i].sends ? send : receive;
                             move(place, whole(data[i]), messages[i].peer);
                           }
                         });
                         for (std::size_t i = 0; i < data.size(); ++i) {
                           if (!messages[i].sends) bring(tensors[i], data[i]);
                         }
                         return true;
                       });
  }

  DriverGroup& driver_;
  std::shared_ptr<StagedGroup> group_;
  std::mutex mutex_;
  std::optional<std::vector<Late>> batch_;  ///< between its begin and its end
};

}  // namespace backendkit
