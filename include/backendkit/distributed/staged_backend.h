// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <backendkit/distributed/arguments.h>
#include <backendkit/distributed/driver_calls.h>
#include <backendkit/distributed/driver_messages.h>
#include <backendkit/distributed/staged_sparse.h>
#include <backendkit/distributed/staged_steps.h>

namespace backendkit {

/// c10d::Backend of the device. The driver does the collectives that it has. For the others,
/// tensors go to the host, the group's part for the CPU does the collective, and the results come
/// back. Collectives take tensors of any dtype, in any memory format, and throw ValueError for
/// those that do not fit together. A function without `override` is not virtual in every release.
///
/// `kHasDriver` says whether the driver has any; if not, the code for them is left out.
template <bool kHasDriver>
class StagedBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;
  using Handle = c10::intrusive_ptr<c10d::Work>;

  StagedBackend(std::shared_ptr<StagedGroup> group, std::chrono::milliseconds timeout)
      : c10d::Backend(group->rank(), group->size()),
        group_(std::move(group)),
        arguments_(rank_, size_),
        timeout_(timeout) {
    if constexpr (kHasDriver) {
      driver_ = std::make_unique<DriverGroup>(group_, timeout);
      messages_ = std::make_unique<DriverMessages>(*driver_, group_);
    }
  }

  ~StagedBackend() override { group_->close(); }

  const std::string getBackendName() const override { return group_->name(); }

  c10::intrusive_ptr<Options> getBackendOptions() {
    return c10::make_intrusive<Options>(group_->name(), timeout_);
  }

  Handle allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const at::Tensor& tensor = arguments_.only(tensors);
    if (tensor.layout() == at::kSparse) return noted(all_reduce_sparse(*group_, tensor, options));
    if (const auto work = by_driver([&](auto call) { return call.all_reduce(tensor, options); }))
      return noted(work);
    return start(c10d::OpType::ALLREDUCE, "all_reduce", tensors,
                 [&](Steps add) { add.all_reduce(tensor, options); });
  }

  Handle allreduce_coalesced(Tensors& tensors,
                             const c10d::AllreduceCoalescedOptions& options) override {
    if (driver_can(tensors)) {
      return each(tensors, [&](Tensors& one, std::size_t) { return allreduce(one, options); });
    }
    return start(c10d::OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", tensors,
                 [&](Steps add) {
                   for (const at::Tensor& tensor : tensors) add.all_reduce(tensor, options);
                 });
  }

  Handle reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const at::Tensor& tensor = arguments_.only(tensors);
    if (const auto work = by_driver([&](auto call) { return call.reduce(tensor, options); }))
      return noted(work);
    return start(c10d::OpType::REDUCE, "reduce", tensors,
                 [&](Steps add) { add.reduce(tensor, options); });
  }

  Handle broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const at::Tensor& tensor = arguments_.only(tensors);
    if (const auto work = by_driver([&](auto call) { return call.broadcast(tensor, options); }))
      return noted(work);
    return start(c10d::OpType::BROADCAST, "broadcast", tensors,
                 [&](Steps add) { add.broadcast(tensor, options.rootRank, options.timeout); });
  }

  /// Outputs may differ in size from rank to rank; each is as large as that rank's input.
  Handle allgather(Lists& outputs, Tensors& inputs,
                   const c10d::AllgatherOptions& options) override {
    const Tensors& parts = arguments_.only(outputs);
    const at::Tensor& input = arguments_.only(inputs);
    if (const auto work =
            by_driver([&](auto call) { return call.all_gather(parts, input, options); }))
      return noted(work);
    return start(c10d::OpType::ALLGATHER, "all_gather", parts,
                 [&](Steps add) { add.all_gather(parts, input, options); });
  }

  Handle _allgather_base(at::Tensor& output, at::Tensor& input,
                         const c10d::AllgatherOptions& options) override {
    if (const auto work =
            by_driver([&](auto call) { return call.all_gather_base(output, input, options); }))
      return noted(work);
    return start(c10d::OpType::_ALLGATHER_BASE, "all_gather_into_tensor", {output},
                 [&](Steps add) { add.all_gather_base(output, input, options); });
  }

  Handle allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                         const c10d::AllgatherOptions& options) override {
    arguments_.pairs(outputs, inputs);
    if (driver_can(inputs)) {
      return each(outputs, [&](Tensors& one, std::size_t i) {
        return _allgather_base(one[0], inputs[i], options);
      });
    }
    return start(c10d::OpType::COALESCED, "all_gather_into_tensor_coalesced", outputs,
                 [&](Steps add) {
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     add.all_gather_base(outputs[i], inputs[i], options);
                   }
                 });
  }

  /// The outputs are by rank, and within a rank by input.
  Handle allgather_coalesced(Lists& outputs, Tensors& inputs,
                             const c10d::AllgatherOptions& options) override {
    arguments_.count(outputs.size(), "lists of outputs");
    for (const Tensors& of_rank : outputs) arguments_.pairs(of_rank, inputs);
    return start(c10d::OpType::ALLGATHER_COALESCED, "all_gather_coalesced", flat(outputs),
                 [&](Steps add) {
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     Tensors of_input;
                     for (const Tensors& of_rank : outputs) of_input.push_back(of_rank[i]);
                     add.all_gather(of_input, inputs[i], options);
                   }
                 });
  }

  /// Inputs may differ in size; each is as large as that rank's output.
  Handle reduce_scatter(Tensors& outputs, Lists& inputs,
                        const c10d::ReduceScatterOptions& options) override {
    const at::Tensor& output = arguments_.only(outputs);
    const Tensors& parts = arguments_.only(inputs);
    if (const auto work =
            by_driver([&](auto call) { return call.reduce_scatter(output, parts, options); }))
      return noted(work);
    return start(c10d::OpType::REDUCE_SCATTER, "reduce_scatter", outputs,
                 [&](Steps add) { add.reduce_scatter(output, parts, options); });
  }

  Handle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                              const c10d::ReduceScatterOptions& options) override {
    if (const auto work =
            by_driver([&](auto call) { return call.reduce_scatter_base(output, input, options); }))
      return noted(work);
    return start(c10d::OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", {output},
                 [&](Steps add) { add.reduce_scatter_base(output, input, options); });
  }

  Handle reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                         const c10d::ReduceScatterOptions& options) override {
    arguments_.pairs(outputs, inputs);
    if (driver_can(inputs)) {
      return each(outputs, [&](Tensors& one, std::size_t i) {
        return _reduce_scatter_base(one[0], inputs[i], options);
      });
    }
    return start(c10d::OpType::COALESCED, "reduce_scatter_tensor_coalesced", outputs,
                 [&](Steps add) {
                   for (std::size_t i = 0; i < inputs.size(); ++i) {
                     add.reduce_scatter_base(outputs[i], inputs[i], options);
                   }
                 });
  }

  Handle alltoall_base(at::Tensor& output, at::Tensor& input,
                       std::vector<std::int64_t>& output_rows,
                       std::vector<std::int64_t>& input_rows,
                       const c10d::AllToAllOptions& options) override {
    if (const auto work = by_driver([&](auto call) {
          return call.all_to_all_base(output, input, output_rows, input_rows, options);
        }))
      return noted(work);
    return start(c10d::OpType::ALLTOALL_BASE, "all_to_all_single", {output}, [&](Steps add) {
      add.all_to_all_base(output, input, output_rows, input_rows, options);
    });
  }

  Handle alltoall(Tensors& outputs, Tensors& inputs,
                  const c10d::AllToAllOptions& options) override {
    if (const auto work =
            by_driver([&](auto call) { return call.all_to_all(outputs, inputs, options); }))
      return noted(work);
    return start(c10d::OpType::ALLTOALL, "all_to_all", outputs,
                 [&](Steps add) { add.all_to_all(outputs, inputs, options); });
  }

  Handle gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    const at::Tensor& input = arguments_.only(inputs);
    if (const auto work =
            by_driver([&](auto call) { return call.gather(outputs, input, options); }))
      return noted(work);
    return start(c10d::OpType::GATHER, "gather", flat(outputs),
                 [&](Steps add) { add.gather(outputs, input, options); });
  }

  Handle scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override {
    const at::Tensor& output = arguments_.only(outputs);
    if (const auto work =
            by_driver([&](auto call) { return call.scatter(output, inputs, options); }))
      return noted(work);
    return start(c10d::OpType::SCATTER, "scatter", outputs,
                 [&](Steps add) { add.scatter(output, inputs, options); });
  }

  Handle send(Tensors& tensors, int to, int tag) override {
    arguments_.partner(to);
    if (const auto work = message({arguments_.only(tensors), to, true}, tag)) return work;
    auto call = std::make_shared<Call>();
    const auto& buffer = call->read(arguments_.only(tensors));
    call->step({Call::all(buffer)}, nullptr, {});
    return noted(group_->message(c10d::OpType::SEND, "send", tensors, call,
                                 [&buffer, to, tag](c10d::Backend& host) {
                                   Tensors bytes{buffer.host()};
                                   return host.send(bytes, to, tag);
                                 }));
  }

  Handle recv(Tensors& tensors, int from, int tag) override {
    arguments_.partner(from);
    if (const auto work = message({arguments_.only(tensors), from, false}, tag)) return work;
    return receive(
        c10d::OpType::RECV, "recv", tensors,
        [from, tag](c10d::Backend& host, Tensors& bytes) { return host.recv(bytes, from, tag); });
  }

  /// The driver's messages have a known source.
  Handle recvAnysource(Tensors& tensors, int tag) override {
    if constexpr (kHasDriver) {
      TORCH_CHECK_VALUE(!messages_->can_do(arguments_.only(tensors), tag),
                        "in a group with a `device_id`, the driver sends messages without a tag: "
                        "name the rank that `recv` receives from, or give `send` and `recv` a tag");
    }
    return receive(
        c10d::OpType::RECVANYSOURCE, "recv_any_source", tensors,
        [tag](c10d::Backend& host, Tensors& bytes) { return host.recvAnysource(bytes, tag); });
  }

  Handle barrier(const c10d::BarrierOptions& options) override {
    return start(c10d::OpType::BARRIER, "barrier", {},
                 [&](Steps add) { add.barrier(options, group_->devices()); });
  }

  /// Gloo's own, which names the ranks that do not come.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) override {
    auto call = std::make_shared<Call>();
    const auto run = [=](c10d::Backend& host) {
      host.monitoredBarrier(options, wait_for_all);
      return Call::Begun{};
    };
    call->step({}, run, {});
    group_->collective(c10d::OpType::BARRIER, "monitored_barrier", {}, call)->wait(kNoTimeout);
  }

  bool supportsCoalescing() const { return true; }

  /// Until `endCoalescing`, calls are noted; each starts at once, except for the driver's messages,
  /// which start together at the end.
  void startCoalescing() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    coalesced_.emplace();
    if constexpr (kHasDriver) messages_->begin_batch();
  }

  /// A work that ends after all calls since `startCoalescing`.
  Handle endCoalescing() override {
    std::vector<WorkPtr> works;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      TORCH_CHECK(coalesced_.has_value(), "endCoalescing without startCoalescing");
      works = std::move(*coalesced_);
      coalesced_.reset();
    }
    if constexpr (kHasDriver) {
      if (const auto work = messages_->end_batch()) works.push_back(work);
    }
    return works.size() == 1 ? works[0] : group_->joined(std::move(works));
  }

  /// PyTorch's name for what `device_id` of a group does on all its ranks.
  void eagerConnectSingleDevice([[maybe_unused]] at::Device device) override {
    if constexpr (kHasDriver) driver_->connect(device);
  }

  /// All ranks count alike, so they need not agree on a first number.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return group_->collectives_started(); }

  /// What runs goes on; later calls throw. A failure counts no more: the program knows of it.
  void shutdown() {
    group_->close();
    if constexpr (kHasDriver) driver_->close();
  }

  /// What runs ends with an error, and later calls throw.
  void abort() {
    // Copies of the group may wait for the driver, which may wait for ranks through the group.
    if constexpr (kHasDriver) driver_->abort();
    group_->abort();
    if constexpr (kHasDriver) {
      messages_->drop_batch();
      driver_->abort();  // if it was connected meanwhile
    }
  }

  /// The time-out of later calls that have none of their own.
  void setTimeout(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    if constexpr (kHasDriver) driver_->set_timeout(timeout);
    group_->set_timeout(timeout);
  }

 private:
  using Call = StagedCall;
  using Steps = StagedSteps;
  using WorkPtr = StagedGroup::WorkPtr;

  /// What the driver makes of a call; null if it cannot do it.
  template <class Call>
  WorkPtr by_driver([[maybe_unused]] const Call& call) {
    if constexpr (kHasDriver) return call(DriverCalls(*driver_, arguments_));
    return {};
  }

  /// A message of the driver's; null if it goes through the host.
  WorkPtr message([[maybe_unused]] const DriverMessages::Message& one, [[maybe_unused]] int tag) {
    if constexpr (kHasDriver) {
      if (messages_->can_do(one.tensor, tag)) return messages_->start(one);
    }
    return {};
  }

  bool driver_can([[maybe_unused]] const Tensors& tensors) {
    if constexpr (kHasDriver) return driver_->can_use(tensors);
    return false;
  }

  /// A work of one collective for each of these tensors.
  template <class Collective>
  Handle each(const Tensors& tensors, const Collective& collective) {
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Tensors one{tensors[i]};
      works.push_back(c10::dynamic_intrusive_pointer_cast<StagedWork>(collective(one, i)));
    }
    return group_->joined(std::move(works));
  }

  template <class Add>
  Handle start(c10d::OpType type, const char* title, Tensors outputs, const Add& add) {
    auto call = std::make_shared<Call>();
    add(Steps(*call, arguments_));
    return noted(group_->collective(type, title, std::move(outputs), std::move(call)));
  }

  template <class Post>
  Handle receive(c10d::OpType type, const char* title, const Tensors& tensors, Post post) {
    auto call = std::make_shared<Call>();
    const auto& buffer = call->write(arguments_.only(tensors));
    call->step({}, nullptr, {Call::all(buffer)});
    return noted(group_->message(type, title, tensors, call, [&buffer, post](c10d::Backend& host) {
      Tensors bytes{buffer.host()};
      return post(host, bytes);
    }));
  }

  Handle noted(WorkPtr work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (coalesced_) coalesced_->push_back(work);
    return work;
  }

  static Tensors flat(const Lists& lists) {
    Tensors all;
    for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  std::shared_ptr<StagedGroup> group_;
  std::conditional_t<kHasDriver, std::unique_ptr<DriverGroup>, std::monostate> driver_;
  std::conditional_t<kHasDriver, std::unique_ptr<DriverMessages>, std::monostate> messages_;
  GroupArguments arguments_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::mutex mutex_;
  std::optional<std::vector<WorkPtr>> coalesced_;
};

}  // namespace backendkit
