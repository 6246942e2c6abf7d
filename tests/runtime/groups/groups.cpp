// SPDX-License-Identifier: Apache-2.0
// Two ranks in one process, each with a thread for each of its two process groups, start
// collectives, messages and barriers at random, on any stream. test_sanitized_groups.py builds it
// and the backend with ThreadSanitizer and with AddressSanitizer.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace {

using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

constexpr int kRanks = 2;
constexpr int kGroups = 2;
constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

/// Where the ranks of a group meet: the last one does for all what they have come for.
class Meeting {
 public:
  using Parts = std::array<std::pair<char*, const char*>, kRanks>;  // outputs and inputs

  void meet(int rank, char* output, const char* input, const std::function<void(Parts&)>& all) {
    std::unique_lock<std::mutex> lock(mutex_);
    parts_[static_cast<std::size_t>(rank)] = {output, input};
    const std::uint64_t number = number_;
    if (++come_ == kRanks) {
      all(parts_);
      come_ = 0;
      ++number_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return number_ != number; });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Parts parts_{};
  int come_ = 0;
  std::uint64_t number_ = 0;
};

/// What waits for a rank. Whoever asks first gets what was sent first.
class Mailbox {
 public:
  void put(const char* bytes, std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    letters_.emplace(sent_++, std::vector<char>(bytes, bytes + size));
    changed_.notify_all();
  }

  std::size_t ask() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_++;
  }

  void take(std::size_t number, char* bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return letters_.count(number) == 1; });
    const std::vector<char> letter = std::move(letters_.at(number));
    letters_.erase(number);
    std::memcpy(bytes, letter.data(), letter.size());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::vector<char>> letters_;
  std::size_t sent_ = 0;
  std::size_t asked_ = 0;
};

struct Room {
  Meeting meeting;
  std::array<Mailbox, kRanks> mailboxes;  // by receiver
};

class Done final : public c10d::Work {
 public:
  explicit Done(std::function<void()> wait = nullptr) : wait_(std::move(wait)) {}
  bool wait(std::chrono::milliseconds) override {
    if (wait_) wait_();
    return true;
  }

 private:
  std::function<void()> wait_;
};

/// The part of a process group for the CPU, which needs no network. Sums are those of float32.
class Host final : public c10d::Backend {
 public:
  Host(int rank, std::shared_ptr<Room> room)
      : c10d::Backend(rank, kRanks), room_(std::move(room)) {}

  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override {
    const auto count = static_cast<std::size_t>(tensors[0].numel());
    meet(tensors[0], tensors[0], [count](Meeting::Parts& parts) {
      auto* const first = reinterpret_cast<float*>(parts[0].first);
      auto* const second = reinterpret_cast<float*>(parts[1].first);
      for (std::size_t i = 0; i < count; ++i) first[i] = second[i] = first[i] + second[i];
    });
    return done();
  }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const std::size_t bytes = tensors[0].nbytes();
    const auto root = static_cast<std::size_t>(options.rootRank);
    meet(tensors[0], tensors[0], [=](Meeting::Parts& parts) {
      std::memcpy(parts[1 - root].first, parts[root].second, bytes);
    });
    return done();
  }

  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions&) override {
    const std::size_t bytes = input.nbytes();
    meet(output, input, [bytes](Meeting::Parts& parts) {
      for (const auto& to : parts) {
        for (std::size_t rank = 0; rank < kRanks; ++rank) {
          std::memcpy(to.first + rank * bytes, parts[rank].second, bytes);
        }
      }
    });
    return done();
  }

  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                     std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    const std::size_t bytes = input.nbytes() / kRanks;
    meet(output, input, [bytes](Meeting::Parts& parts) {
      for (std::size_t to = 0; to < kRanks; ++to) {
        for (std::size_t from = 0; from < kRanks; ++from) {
          std::memcpy(parts[to].first + from * bytes, parts[from].second + to * bytes, bytes);
        }
      }
    });
    return done();
  }

  Work barrier(const c10d::BarrierOptions&) override {
    room_->meeting.meet(rank_, nullptr, nullptr, [](Meeting::Parts&) {});
    return done();
  }

  Work send(Tensors& tensors, int to, int) override {
    box(to).put(static_cast<const char*>(tensors[0].const_data_ptr()), tensors[0].nbytes());
    return done();
  }

  Work recv(Tensors& tensors, int, int) override {
    const at::Tensor to = tensors[0];
    return c10::make_intrusive<Done>([this, to, number = box(rank_).ask()] {
      box(rank_).take(number, static_cast<char*>(to.mutable_data_ptr()));
    });
  }

 private:
  static Work done() { return c10::make_intrusive<Done>(); }

  Mailbox& box(int rank) { return room_->mailboxes[static_cast<std::size_t>(rank)]; }

  void meet(const at::Tensor& output, const at::Tensor& input,
            const std::function<void(Meeting::Parts&)>& all) {
    room_->meeting.meet(rank_, static_cast<char*>(output.mutable_data_ptr()),
                        static_cast<const char*>(input.const_data_ptr()), all);
  }

  std::shared_ptr<Room> room_;
};

/// A group with the device's part, as Python makes it.
c10::intrusive_ptr<c10d::ProcessGroup> make(int rank, const std::shared_ptr<Room>& room) {
  using Group = c10d::ProcessGroup;
  auto group = c10::make_intrusive<Group>(rank, kRanks);
  group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO,
                    c10::make_intrusive<Host>(rank, room));
  const auto attach =
      c10::Dispatcher::singleton().findSchemaOrThrow("_torch_foo::attach_process_group", "");
  torch::jit::Stack stack{c10::IValue(group), c10::IValue(60'000)};
  attach.callBoxed(&stack);
  return group;
}

/// The collectives of one rank in one group; that of the other rank has the same seed.
class Worker {
 public:
  Worker(int rank, c10d::Backend& backend, unsigned seed)
      : rank_(rank),
        backend_(backend),
        random_(seed),
        device_(kDevice, static_cast<c10::DeviceIndex>(rank)),
        guard_(kDevice) {
    for (c10::Stream& stream : streams_) stream = guard_.getStreamFromGlobalPool(device_, false);
  }

  /// Starts one and ends an older one; false when numbers came out wrong.
  bool step() {
    guard_.setDevice(device_);
    const c10::StreamGuard stream(streams_[random_() % streams_.size()]);
    const std::int64_t count = random_() % 5000 == 0 ? 3 << 20 : 1 + random_() % 2000;
    const auto value = static_cast<float>(random_() % 100);
    pending_.push_back(start(random_() % 6, count, value));
    return pending_.size() < 1 + random_() % 4 || end();
  }

  bool end_all() {
    bool right = true;
    while (!pending_.empty()) right = end() && right;
    return right;
  }

 private:
  struct Pending {
    Work work;
    at::Tensor result;
    std::array<float, kRanks> expected;  // of the halves of the result
    Work other;                          // of a message
  };

  /// Rank r gives `value` + r.
  Pending start(std::uint64_t kind, std::int64_t count, float value) {
    const float mine = value + static_cast<float>(rank_);
    const at::Tensor one = full(count, mine);
    const at::Tensor two = full(2 * count, mine);
    at::Tensor result = one;
    switch (kind) {
      case 0: {
        Tensors all{one};
        return {backend_.allreduce(all, {}), one, {2 * value + 1, 2 * value + 1}, {}};
      }
      case 1: {
        Tensors all{one};
        c10d::BroadcastOptions options;
        options.rootRank = count % kRanks;
        const float from = value + static_cast<float>(options.rootRank);
        return {backend_.broadcast(all, options), one, {from, from}, {}};
      }
      case 2: {
        result = full(2 * count, -1);
        at::Tensor input = one;
        return {backend_._allgather_base(result, input, {}), result, {value, value + 1}, {}};
      }
      case 3: {
        result = full(2 * count, -1);
        at::Tensor input = two;
        std::vector<std::int64_t> to;
        std::vector<std::int64_t> from;
        return {
            backend_.alltoall_base(result, input, to, from, {}), result, {value, value + 1}, {}};
      }
      case 4: {
        result = full(count, -1);
        Tensors out{one};
        Tensors in{result};
        const int other = 1 - rank_;
        const float theirs = value + static_cast<float>(other);
        backend_.startCoalescing();
        const Work sent = backend_.send(out, other, 0);
        const Work received = backend_.recv(in, other, 0);
        const Work both = backend_.endCoalescing();
        return {count % 2 == 0 ? both : received, result, {theirs, theirs}, sent};
      }
      default:
        return {backend_.barrier({}), one, {mine, mine}, {}};
    }
  }

  bool end() {
    const Pending one = std::move(pending_.front());
    pending_.pop_front();
    if (random_() % 4 == 0) {
      one.work->getFuture()->wait();
    }
    one.work->wait();
    if (one.other) one.other->wait();
    const at::Tensor there = one.result.cpu();
    const auto* const values = there.const_data_ptr<float>();
    const std::int64_t count = there.numel();
    return values[0] == one.expected[0] && values[count - 1] == one.expected[1];
  }

  at::Tensor full(std::int64_t count, float value) const {
    return at::full({count}, value, at::TensorOptions(device_).dtype(at::kFloat));
  }

  const int rank_;
  c10d::Backend& backend_;
  std::minstd_rand random_;
  const c10::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  std::array<c10::Stream, 3> streams_{kDefault, kDefault, kDefault};
  std::deque<Pending> pending_;

  inline static const c10::Stream kDefault{c10::Stream::DEFAULT, c10::Device(kDevice, 0)};
};

}  // namespace

/// groups COUNT: each of four threads starts so many operations.
int main(int, char** arguments) {
  const long count = std::atol(arguments[1]);
  std::atomic<long> wrong{0};
  std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> groups;
  std::vector<std::thread> threads;
  for (int number = 0; number < kGroups; ++number) {
    const auto room = std::make_shared<Room>();
    for (int rank = 0; rank < kRanks; ++rank) groups.push_back(make(rank, room));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto backend = groups[i]->getBackend(kDevice);
      const int rank = groups[i]->getRank();
      // Its messages are the driver's, if that has collectives.
      if (i < kRanks) {
        backend->eagerConnectSingleDevice({kDevice, static_cast<c10::DeviceIndex>(rank)});
      }
      Worker worker(rank, *backend, static_cast<unsigned>(1 + i / kRanks));
      for (long step = 0; step < count; ++step) wrong += worker.step() ? 0 : 1;
      wrong += worker.end_all() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto end =
      c10::Dispatcher::singleton().findSchemaOrThrow("_torch_foo::end_process_groups", "");
  torch::jit::Stack nothing;
  end.callBoxed(&nothing);
  std::printf("%ld operations, %ld wrong\n", count * kRanks * kGroups, wrong.load());
  std::fflush(stdout);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
