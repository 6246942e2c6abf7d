// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>

#include <backendkit/distributed/apart.h>
#include <backendkit/distributed/arguments.h>
#include <backendkit/distributed/reduction.h>
#include <backendkit/distributed/staged_call.h>

namespace backendkit {

/// Adds collectives to a call, each as the steps that do it on the host. Large tensors go in
/// chunks, so that copies and collectives overlap. Data is moved as bytes, so that tensors may have
/// any dtype.
class StagedSteps {
 public:
  using Call = StagedCall;
  using Buffer = StagedBuffer;
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;
  using Sizes = std::vector<std::int64_t>;

  StagedSteps(Call& call, const GroupArguments& arguments)
      : call_(call), arguments_(arguments), size_(arguments.size()) {}

  void all_reduce(const at::Tensor& tensor, const c10d::AllreduceOptions& options) {
    const Reduction reduction(options.reduceOp, tensor.scalar_type(), size_);
    const Buffer& buffer = call_.change(tensor);
    for_chunks(buffer.bytes(), 1, [&](std::int64_t begin, std::int64_t end) {
      const auto run = [=, &buffer](c10d::Backend& host) {
        const at::Tensor raw = buffer.values(begin, end);
        Tensors values{reduction.load(raw)};
        auto ours = options;
        ours.reduceOp = reduction.host_op();
        const auto work = host.allreduce(values, ours);
        return Call::Begun{work, [=] { reduction.store(values[0], raw); }};
      };
      call_.step({{&buffer, begin, end}}, run, {{&buffer, begin, end}});
    });
  }

  void reduce(const at::Tensor& tensor, const c10d::ReduceOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const Reduction reduction(options.reduceOp, tensor.scalar_type(), size_);
    const Buffer& buffer = root ? call_.change(tensor) : call_.read(tensor);
    for_chunks(buffer.bytes(), 1, [&](std::int64_t begin, std::int64_t end) {
      const auto run = [=, &buffer](c10d::Backend& host) {
        at::Tensor raw = buffer.values(begin, end);
        // Gloo writes to the tensors of all ranks, and so does `load`.
        if (!root && buffer.is_shared()) raw = raw.clone();
        Tensors values{reduction.load(raw)};
        auto ours = options;
        ours.reduceOp = reduction.host_op();
        const auto work = host.reduce(values, ours);
        return Call::Begun{work, [=] {
                             if (root) reduction.store(values[0], raw);
                           }};
      };
      const Range range{&buffer, begin, end};
      call_.step({range}, run, only_if(root, range));
    });
  }

  void broadcast(const at::Tensor& tensor, std::int64_t from, std::chrono::milliseconds timeout) {
    const bool root = arguments_.is_root(from);
    const Buffer& buffer = root ? call_.read(tensor) : call_.write(tensor);
    c10d::BroadcastOptions options;
    options.rootRank = from;
    options.timeout = timeout;
    for_chunks(buffer.bytes(), 1, [&](std::int64_t begin, std::int64_t end) {
      const auto run = [=, &buffer](c10d::Backend& host) {
        Tensors bytes{buffer.host(begin, end)};
        return Call::Begun{host.broadcast(bytes, options), nullptr};
      };
      const Range range{&buffer, begin, end};
      call_.step(only_if(root, range), run, only_if(!root, range));
    });
  }

  /// `outputs` has one tensor for each rank, of the size of that rank's input.
  void all_gather(const Tensors& outputs, const at::Tensor& input,
                  const c10d::AllgatherOptions& options) {
    const at::Tensor& own = arguments_.parts(outputs)[static_cast<std::size_t>(arguments_.rank())];
    arguments_.same(own, input);
    for (const at::Tensor& output : outputs) arguments_.same_dtype(output, input);
    const auto is_equal = [&](const at::Tensor& one) { return one.numel() == input.numel(); };
    if (!std::all_of(outputs.begin(), outputs.end(), is_equal)) {
      {
        const at::AutoDispatchBelowADInplaceOrView below;  // see StagedGroup::guarded
        own.detach().copy_(input.detach().reshape(own.sizes()));
      }
      for (int rank = 0; rank < size_; ++rank) {
        broadcast(outputs[static_cast<std::size_t>(rank)], rank, options.timeout);
      }
      return;
    }
    Ranges to;
    for (const at::Tensor& output : outputs) to.push_back({&call_.write(output), 0, 0});
    gather_equal(call_.read(apart_unless_own(input, outputs, arguments_.rank())), to, options);
  }

  void all_gather_base(const at::Tensor& output, const at::Tensor& input,
                       const c10d::AllgatherOptions& options) {
    arguments_.whole_of(output, input, "output");
    const Buffer& from = call_.read(apart_unless_part(input, output, arguments_.rank()));
    gather_equal(from, parts_of(call_.write(output), from.bytes()), options);
  }

  /// `inputs` has one tensor for each rank, of the size of that rank's output.
  void reduce_scatter(const at::Tensor& output, const Tensors& inputs,
                      const c10d::ReduceScatterOptions& options) {
    arguments_.same(output, arguments_.parts(inputs)[static_cast<std::size_t>(arguments_.rank())]);
    const Reduction reduction(options.reduceOp, output.scalar_type(), size_);
    Ranges from;
    bool is_equal = true;
    for (const at::Tensor& input : inputs) {
      arguments_.same_dtype(output, input);
      is_equal = is_equal && input.numel() == output.numel();
      from.push_back(
          Call::all(call_.read(is_there(input, output) ? input : apart(input, {output}))));
    }
    const Buffer& to = call_.write(output);
    if (is_equal) {
      scatter_equal(to, from, reduction, options.timeout);
    } else {
      scatter_step(from, Call::all(to), reduction, options.timeout);
    }
  }

  void reduce_scatter_base(const at::Tensor& output, const at::Tensor& input,
                           const c10d::ReduceScatterOptions& options) {
    arguments_.whole_of(input, output, "input");
    const Reduction reduction(options.reduceOp, output.scalar_type(), size_);
    bool there = false;  // the numbers that a step writes are then those that it has read
    for (int rank = 0; rank < size_; ++rank) there = there || is_part(output, input, rank);
    const Buffer& from = call_.read(there ? input : apart(input, {output}));
    const Buffer& to = call_.write(output);
    scatter_equal(to, parts_of(from, to.bytes()), reduction, options.timeout);
  }

  void all_to_all_base(const at::Tensor& output, const at::Tensor& input, const Sizes& output_rows,
                       const Sizes& input_rows, const c10d::AllToAllOptions& options) {
    arguments_.same_dtype(output, input);
    const Sizes received = arguments_.split(output, output_rows);
    const Sizes sent = arguments_.split(input, input_rows);
    const Buffer& from = call_.read(apart(input, {output}));
    exchange({Call::all(call_.write(output))}, {Call::all(from)}, received, sent, options);
  }

  void all_to_all(const Tensors& outputs, const Tensors& inputs,
                  const c10d::AllToAllOptions& options) {
    arguments_.count(outputs.size(), "outputs");
    arguments_.count(inputs.size(), "inputs");
    Ranges to;
    Ranges from;
    for (const at::Tensor& output : outputs) {
      arguments_.same_dtype(output, inputs[0]);
      to.push_back(Call::all(call_.write(output)));
    }
    for (const at::Tensor& input : inputs) {
      arguments_.same_dtype(outputs[0], input);
      from.push_back(Call::all(call_.read(apart(input, outputs))));
    }
    exchange(to, from, sizes(to), sizes(from), options);
  }

  void gather(const Lists& outputs, const at::Tensor& input, const c10d::GatherOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const Tensors all = arguments_.on_root(root, outputs, "outputs");
    const Buffer& own = call_.read(root ? apart_unless_own(input, all, arguments_.rank()) : input);
    Ranges places;
    for (const at::Tensor& output : all) {
      arguments_.same(output, input);
      places.push_back({&call_.write(output), 0, 0});
    }
    for_chunks(own.bytes(), size_, [&](std::int64_t begin, std::int64_t end) {
      const Ranges to = chunk_of(places, begin, end);
      const auto run = [=, &own](c10d::Backend& host) {
        Lists all(root ? 1 : 0);
        if (root) all[0] = bytes_of(to);
        Tensors input_bytes{own.host(begin, end)};
        return Call::Begun{host.gather(all, input_bytes, options), nullptr};
      };
      call_.step({{&own, begin, end}}, run, to);
    });
  }

  void scatter(const at::Tensor& output, const Lists& inputs, const c10d::ScatterOptions& options) {
    const bool root = arguments_.is_root(options.rootRank);
    const Buffer& own = call_.write(output);
    Ranges places;
    const Tensors given = arguments_.on_root(root, inputs, "inputs");
    for (const at::Tensor& input : given) arguments_.same(output, input);
    for (const at::Tensor& input : all_apart(given, output, arguments_.rank())) {
      places.push_back({&call_.read(input), 0, 0});
    }
    for_chunks(own.bytes(), size_, [&](std::int64_t begin, std::int64_t end) {
      const Ranges from = chunk_of(places, begin, end);
      const auto run = [=, &own](c10d::Backend& host) {
        Tensors output_bytes{own.host(begin, end)};
        Lists all(root ? 1 : 0);
        if (root) all[0] = bytes_of(from);
        return Call::Begun{host.scatter(output_bytes, all, options), nullptr};
      };
      call_.step(from, run, {{&own, begin, end}});
    });
  }

  /// Ends after all ranks have come here and the current streams of their devices have done what
  /// they have now: of those that `options` names, or else of the current one and of `devices`.
  void barrier(const c10d::BarrierOptions& options, std::set<c10::DeviceIndex> devices) {
    std::vector<StreamPoint> now;
    if (device_facts().in_use()) {
      devices.insert(device_guard().getDevice().index());
      if (!options.device_ids.empty()) {
        devices = {options.device_ids.begin(), options.device_ids.end()};
      }
      for (const c10::DeviceIndex device : devices) {
        now.emplace_back(device_guard().getStream(c10::Device(kDeviceType, device)));
      }
    }
    c10d::BarrierOptions ours;
    ours.timeout = options.timeout;
    const auto run = [=](c10d::Backend& host) {
      for (const StreamPoint& one : now) one.wait();
      return Call::Begun{host.barrier(ours), nullptr};
    };
    call_.step({}, run, {});
  }

 private:
  using Range = Call::Range;
  using Ranges = Call::Ranges;

  /// Bytes that one step brings to the host or back: enough for Gloo's full speed, and few enough
  /// that a tensor of a few times this size has steps that overlap. All ranks must agree.
  static constexpr std::int64_t kChunk = std::int64_t{16} << 20;

  /// Calls `use` with the first and last byte of each chunk, when a step brings that many bytes for
  /// each of `parts`. Elements of any dtype stay whole.
  template <class Use>
  static void for_chunks(std::int64_t bytes, int parts, const Use& use) {
    constexpr std::int64_t kLargestElement = 16;
    const std::int64_t most =
        std::max(kChunk / parts / kLargestElement, std::int64_t{1}) * kLargestElement;
    for (std::int64_t begin = 0; begin < bytes; begin += most) {
      use(begin, std::min(begin + most, bytes));
    }
  }

  /// Gathers equal inputs; `places` says where each rank's output begins.
  void gather_equal(const Buffer& input, const Ranges& places,
                    const c10d::AllgatherOptions& options) {
    for_chunks(input.bytes(), size_, [&](std::int64_t begin, std::int64_t end) {
      const Ranges to = chunk_of(places, begin, end);
      const auto run = [=, &input](c10d::Backend& host) {
        at::Tensor own = input.host(begin, end);
        at::Tensor all = is_one_piece(to) ? piece(to) : at::empty({total(to)}, own.options());
        const auto work = host._allgather_base(all, own, options);
        return Call::Begun{work, [=] {
                             if (!is_one_piece(to)) distribute(all, to);
                           }};
      };
      call_.step({{&input, begin, end}}, run, to);
    });
  }

  void scatter_equal(const Buffer& output, const Ranges& places, const Reduction& reduction,
                     std::chrono::milliseconds timeout) {
    for_chunks(output.bytes(), size_, [&](std::int64_t begin, std::int64_t end) {
      scatter_step(chunk_of(places, begin, end), {&output, begin, end}, reduction, timeout);
    });
  }

  /// Every rank gets its part from all others and reduces the parts itself, in the order of the
  /// ranks. Half as many bytes are sent as for a reduction of everything, which is what Gloo does,
  /// and the result depends on nothing else.
  void scatter_step(const Ranges& from, const Range& to, const Reduction& reduction,
                    std::chrono::milliseconds timeout) {
    c10d::AllToAllOptions options;
    options.timeout = timeout;
    const auto run = [=, ranks = size_](c10d::Backend& host) {
      const at::Tensor result = to.buffer->values(to.begin, to.end);
      const std::int64_t bytes = to.end - to.begin;
      at::Tensor input = piece(from);
      at::Tensor parts = at::empty({bytes * ranks}, input.options());
      Sizes received(static_cast<std::size_t>(ranks), bytes);
      Sizes sent = sizes(from);
      const auto work = host.alltoall_base(parts, input, received, sent, options);
      const auto reduce = [=] {
        const auto part = [&](int rank) {
          return reduction.load(parts.narrow(0, rank * bytes, bytes).view(result.scalar_type()));
        };
        at::Tensor sum = part(0);
        for (int rank = 1; rank < ranks; ++rank) reduction.combine(sum, part(rank));
        reduction.store(sum, result);
      };
      return Call::Begun{work, reduce};
    };
    call_.step(from, run, {to});
  }

  void exchange(const Ranges& to, const Ranges& from, const Sizes& received, const Sizes& sent,
                const c10d::AllToAllOptions& options) {
    const auto run = [=](c10d::Backend& host) {
      at::Tensor input = piece(from);
      at::Tensor output = is_one_piece(to) ? piece(to) : at::empty({total(to)}, input.options());
      Sizes output_bytes = received;
      Sizes input_bytes = sent;
      const auto work = host.alltoall_base(output, input, output_bytes, input_bytes, options);
      return Call::Begun{work, [=] {
                           if (!is_one_piece(to)) distribute(output, to);
                         }};
    };
    call_.step(from, run, to);
  }

  Ranges parts_of(const Buffer& buffer, std::int64_t bytes) const {
    Ranges parts;
    for (int rank = 0; rank < size_; ++rank) parts.push_back({&buffer, rank * bytes, 0});
    return parts;
  }

  static Ranges chunk_of(Ranges places, std::int64_t begin, std::int64_t end) {
    for (Range& place : places) place = {place.buffer, place.begin + begin, place.begin + end};
    return places;
  }

  /// Whether ranges follow one another in one buffer.
  static bool is_one_piece(const Ranges& ranges) {
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].buffer != ranges[0].buffer || ranges[i].begin != ranges[i - 1].end)
        return false;
    }
    return true;
  }

  static Tensors bytes_of(const Ranges& ranges) {
    Tensors all;
    for (const Range& one : ranges) all.push_back(one.buffer->host(one.begin, one.end));
    return all;
  }

  /// The bytes of all ranges, one after another: the ranges' own memory if they are one piece.
  static at::Tensor piece(const Ranges& ranges) {
    if (!is_one_piece(ranges)) return at::cat(bytes_of(ranges));
    return ranges.front().buffer->host(ranges.front().begin, ranges.back().end);
  }

  static void distribute(const at::Tensor& bytes, const Ranges& to) {
    std::int64_t begin = 0;
    for (at::Tensor& one : bytes_of(to)) {
      one.copy_(bytes.narrow(0, begin, one.numel()));
      begin += one.numel();
    }
  }

  static Sizes sizes(const Ranges& ranges) {
    Sizes all;
    for (const Range& one : ranges) all.push_back(one.end - one.begin);
    return all;
  }

  static std::int64_t total(const Ranges& ranges) {
    const Sizes all = sizes(ranges);
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }

  static Ranges only_if(bool here, const Range& range) { return here ? Ranges{range} : Ranges{}; }

  Call& call_;
  const GroupArguments& arguments_;
  int size_;
};

}  // namespace backendkit
