// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <backendkit/distributed/apart.h>
#include <backendkit/distributed/arguments.h>
#include <backendkit/distributed/driver_data.h>
#include <backendkit/distributed/driver_numbers.h>

namespace backendkit {

/// Collectives as calls of the driver's functions. What the driver lacks is made of what it has.
/// Each function returns null, on all ranks alike, if that is not possible, or if a tensor is not
/// one of the device; StagedSteps then checks the arguments. A tensor with gaps, or in another
/// order, gets a dense copy on the group's stream.
class DriverCalls : private DriverData {
 public:
  using Tensors = DriverData::Tensors;
  using Lists = std::vector<Tensors>;
  using Sizes = std::vector<std::int64_t>;
  using WorkPtr = DriverGroup::WorkPtr;
  using Op = c10d::OpType;

  DriverCalls(DriverGroup& group, const GroupArguments& arguments)
      : group_(group), arguments_(arguments), size_(static_cast<std::size_t>(arguments.size())) {}

  WorkPtr all_reduce(const at::Tensor& tensor, const c10d::AllreduceOptions& options) {
    const auto numbers = Numbers::of(options.reduceOp, tensor, arguments_.size());
    if (!numbers || !can_use({tensor}) || driver().all_reduce == nullptr) return {};
    return group_.run(Op::ALLREDUCE, "all_reduce", {tensor}, {tensor}, options.timeout,
                      [&](const Place& place) {
                        const at::Tensor data = scaled(dense(tensor), *numbers);
                        if (!reduce_in_place(place, data, *numbers)) return false;
                        bring(place, tensor, data);
                        return true;
                      });
  }

  /// The driver reduces on all ranks; only the root's tensor changes.
  WorkPtr reduce(const at::Tensor& tensor, const c10d::ReduceOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const auto numbers = Numbers::of(options.reduceOp, tensor, arguments_.size());
    if (!numbers || !can_use({tensor}) || driver().all_reduce == nullptr) return {};
    return group_.run(
        Op::REDUCE, "reduce", {tensor}, {tensor}, options.timeout, [&](const Place& place) {
          const at::Tensor data = scaled(root ? dense(tensor) : dense(tensor).clone(), *numbers);
          if (!reduce_in_place(place, data, *numbers)) return false;
          if (root) bring(place, tensor, data);
          return true;
        });
  }

  WorkPtr broadcast(const at::Tensor& tensor, const c10d::BroadcastOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    if (!can_use({tensor}) || driver().broadcast == nullptr) return {};
    return group_.run(Op::BROADCAST, "broadcast", {tensor}, {tensor}, options.timeout,
                      [&](const Place& place) {
                        const at::Tensor data = root ? dense(tensor) : room(tensor);
                        broadcast(place, data, options.rootRank);
                        if (!root) bring(place, tensor, data);
                        return true;
                      });
  }

  /// `outputs` has one tensor for each rank, which may differ in size.
  WorkPtr all_gather(const Tensors& outputs, const at::Tensor& input,
                     const c10d::AllgatherOptions& options) {
    if (!can_gather(outputs, input)) return {};
    const auto equal = [&](const at::Tensor& one) { return one.numel() == input.numel(); };
    const bool even = std::all_of(outputs.begin(), outputs.end(), equal);
    if (!even && driver().broadcast == nullptr) return {};
    return group_.run(
        Op::ALLGATHER, "all_gather", {input}, outputs, options.timeout, [&](const Place& place) {
          Tensors parts;
          if (even) {
            parts = gathered(place, dense(input)).unbind();
          } else {
            for (std::size_t rank = 0; rank < size_; ++rank) {
              parts.push_back(rank == own()
                                  ? dense(input).clone()
                                  : at::empty(outputs[rank].sizes(), outputs[rank].options()));
              broadcast(place, parts.back(), static_cast<std::int64_t>(rank));
            }
          }
          for (std::size_t rank = 0; rank < size_; ++rank) {
            bring(place, outputs[rank], parts[rank].reshape(outputs[rank].sizes()));
          }
          return true;
        });
  }

  WorkPtr all_gather_base(const at::Tensor& output, const at::Tensor& input,
                          const c10d::AllgatherOptions& options) {
    arguments_.whole_of(output, input, "output");
    if (!can_use({output, input}) || !gathers()) return {};
    return group_.run(Op::_ALLGATHER_BASE, "all_gather_into_tensor", {input}, {output},
                      options.timeout, [&](const Place& place) {
                        const at::Tensor to = room(output);
                        const at::Tensor from = dense(input);
                        gather(place, to, apart_unless_part(from, to, arguments_.rank()));
                        bring(place, output, to);
                        return true;
                      });
  }

  /// `inputs` has one tensor for each rank; null if they differ in size.
  WorkPtr reduce_scatter(const at::Tensor& output, const Tensors& inputs,
                         const c10d::ReduceScatterOptions& options) {
    arguments_.parts(inputs);
    const auto fits = [&](const at::Tensor& one) {
      return one.numel() == output.numel() && one.scalar_type() == output.scalar_type();
    };
    const auto numbers = Numbers::of(options.reduceOp, output, arguments_.size());
    if (!numbers || !std::all_of(inputs.begin(), inputs.end(), fits) || !can_use({output}) ||
        !can_use(inputs) || !scatters())
      return {};
    return group_.run(
        Op::REDUCE_SCATTER, "reduce_scatter", inputs, {output}, options.timeout,
        [&](const Place& place) {
          const at::Tensor all = at::empty({arguments_.size(), output.numel()}, output.options());
          for (std::size_t rank = 0; rank < size_; ++rank) {
            const at::Tensor row = all.select(0, static_cast<std::int64_t>(rank));
            row.copy_(inputs[rank].detach().reshape({-1}));
          }
          return scatter(place, output, all, *numbers);
        });
  }

  WorkPtr reduce_scatter_base(const at::Tensor& output, const at::Tensor& input,
                              const c10d::ReduceScatterOptions& options) {
    arguments_.whole_of(input, output, "input");
    const auto numbers = Numbers::of(options.reduceOp, output, arguments_.size());
    if (!numbers || !can_use({output, input}) || !scatters()) return {};
    return group_.run(Op::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", {input}, {output},
                      options.timeout, [&](const Place& place) {
                        return scatter(place, output, apart(dense(input), {output}), *numbers);
                      });
  }

  WorkPtr all_to_all_base(const at::Tensor& output, const at::Tensor& input,
                          const Sizes& output_rows, const Sizes& input_rows,
                          const c10d::AllToAllOptions& options) {
    arguments_.same_dtype(output, input);
    const Sizes received = arguments_.split(output, output_rows);
    const Sizes sent = arguments_.split(input, input_rows);
    if (!can_use({output, input}) || driver().send == nullptr) return {};
    return group_.run(Op::ALLTOALL_BASE, "all_to_all_single", {input}, {output}, options.timeout,
                      [&](const Place& place) {
                        const at::Tensor to = room(output);
                        const at::Tensor from = apart(dense(input), {to});
                        exchange(place, parts(to, received), parts(from, sent));
                        bring(place, output, to);
                        return true;
                      });
  }

  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs,
                     const c10d::AllToAllOptions& options) {
    arguments_.count(outputs.size(), "outputs");
    arguments_.count(inputs.size(), "inputs");
    if (!can_use(outputs) || !can_use(inputs) || driver().send == nullptr) return {};
    for (const at::Tensor& one : outputs) arguments_.same_dtype(one, inputs[0]);
    for (const at::Tensor& one : inputs) arguments_.same_dtype(outputs[0], one);
    return group_.run(Op::ALLTOALL, "all_to_all", inputs, outputs, options.timeout,
                      [&](const Place& place) {
                        const Tensors to = rooms(outputs);
                        Tensors from = all_dense(inputs);
                        for (at::Tensor& one : from) one = apart(one, to);
                        exchange(place, wholes(to), wholes(from));
                        bring(place, outputs, to);
                        return true;
                      });
  }

  WorkPtr gather(const Lists& lists, const at::Tensor& input, const c10d::GatherOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const Tensors outputs = arguments_.on_root(root, lists, "outputs");
    for (const at::Tensor& one : outputs) arguments_.same(one, input);
    if (!can_use({input}) || !can_use(outputs) || driver().send == nullptr) return {};
    return group_.run(
        Op::GATHER, "gather", {input}, outputs, options.timeout, [&](const Place& place) {
          const Tensors to = rooms(outputs);
          const at::Tensor from =
              root ? apart_unless_own(dense(input), to, arguments_.rank()) : dense(input);
          Parts sent(size_);
          sent[static_cast<std::size_t>(options.rootRank)] = whole(from);
          exchange(place, to.empty() ? Parts(size_) : wholes(to), sent);
          bring(place, outputs, to);
          return true;
        });
  }

  WorkPtr scatter(const at::Tensor& output, const Lists& lists,
                  const c10d::ScatterOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const Tensors inputs = arguments_.on_root(root, lists, "inputs");
    for (const at::Tensor& one : inputs) arguments_.same(output, one);
    if (!can_use({output}) || !can_use(inputs) || driver().send == nullptr) return {};
    return group_.run(Op::SCATTER, "scatter", inputs, {output}, options.timeout,
                      [&](const Place& place) {
                        const at::Tensor to = room(output);
                        Parts received(size_);
                        received[static_cast<std::size_t>(options.rootRank)] = whole(to);
                        const Tensors from = all_apart(all_dense(inputs), to, arguments_.rank());
                        exchange(place, received, from.empty() ? Parts(size_) : wholes(from));
                        bring(place, output, to);
                        return true;
                      });
  }

 private:
  using Numbers = DriverNumbers;

  static const DriverCollectives& driver() { return *device_facts().collectives; }
  std::size_t own() const { return static_cast<std::size_t>(arguments_.rank()); }

  bool can_use(const Tensors& tensors) { return group_.can_use(tensors); }

  bool can_gather(const Tensors& outputs, const at::Tensor& input) {
    arguments_.same(arguments_.parts(outputs)[own()], input);
    for (const at::Tensor& output : outputs) arguments_.same_dtype(output, input);
    return can_use({input}) && can_use(outputs) && gathers();
  }

  static bool gathers() { return driver().all_gather != nullptr || driver().broadcast != nullptr; }
  static bool scatters() {
    return driver().reduce_scatter != nullptr || driver().all_reduce != nullptr;
  }

  static bool reduce_in_place(const Place& place, const at::Tensor& data, const Numbers& numbers) {
    if (data.numel() == 0) return true;
    return place.driver.all_reduce(whole(data).data, count(data, numbers), numbers.type,
                                   numbers.reduce, place.communicator, place.stream, place.device);
  }

  /// Another tensor if it is another: the driver may still refuse.
  static at::Tensor scaled(const at::Tensor& data, const Numbers& numbers) {
    return numbers.factor ? data.mul(at::Scalar(*numbers.factor)) : data;
  }

  static std::size_t count(const at::Tensor& data, const Numbers& numbers) {
    return static_cast<std::size_t>(data.numel() * numbers.each);
  }

  bool scatter(const Place& place, const at::Tensor& output, const at::Tensor& input,
               const Numbers& numbers) {
    if (output.numel() == 0) return true;
    if (place.driver.reduce_scatter == nullptr) {
      const at::Tensor all = scaled(input.clone(), numbers);
      if (!reduce_in_place(place, all, numbers)) return false;
      const std::int64_t size = output.numel();
      bring(place, output,
            all.reshape({-1}).narrow(0, arguments_.rank() * size, size).reshape(output.sizes()));
      return true;
    }
    const at::Tensor from = scaled(input, numbers);
    const at::Tensor to = room(output);
    if (!place.driver.reduce_scatter(whole(to).data, whole(from).data, count(to, numbers),
                                     numbers.type, numbers.reduce, place.communicator, place.stream,
                                     place.device))
      return false;
    bring(place, output, to);
    return true;
  }

  static void broadcast(const Place& place, const at::Tensor& data, std::int64_t root) {
    const Part all = whole(data);
    if (all.bytes == 0) return;
    place.driver.broadcast(all.data, all.bytes, static_cast<int>(root), place.communicator,
                           place.stream, place.device);
  }

  /// The inputs of all ranks, of equal size, one row each.
  at::Tensor gathered(const Place& place, const at::Tensor& input) const {
    at::Tensor all = at::empty({arguments_.size(), input.numel()}, input.options());
    gather(place, all, input);
    return all;
  }

  void gather(const Place& place, const at::Tensor& output, const at::Tensor& input) const {
    const Part from = whole(input);
    if (from.bytes == 0) return;
    if (place.driver.all_gather != nullptr) {
      place.driver.all_gather(whole(output).data, from.data, from.bytes, place.communicator,
                              place.stream, place.device);
      return;
    }
    const at::Tensor rows = output.view({-1}).view({arguments_.size(), input.numel()});
    rows.select(0, arguments_.rank()).copy_(input.reshape({-1}));
    for (int rank = 0; rank < arguments_.size(); ++rank) {
      broadcast(place, rows.select(0, rank), rank);
    }
  }

  /// Sends one part to each rank, and receives one from each.
  void exchange(const Place& place, const Parts& received, const Parts& sent) const {
    in_group(place, [&] {
      for (std::size_t rank = 0; rank < size_; ++rank) {
        send(place, sent[rank], static_cast<int>(rank));
        receive(place, received[rank], static_cast<int>(rank));
      }
    });
  }

  DriverGroup& group_;
  const GroupArguments& arguments_;
  std::size_t size_;
};

}  // namespace backendkit
