// SPDX-License-Identifier: Apache-2.0
#include "shared_collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "communicator.h"

namespace foo::simulator {

namespace {

using backendkit::NumberType;
using backendkit::Reduce;
using Link = std::shared_ptr<Communicator>;

/// The communicators of this process. Work on a stream shares them, so that they outlive it.
struct Links {
  std::mutex mutex;
  std::vector<Link> all;
};

Links& links() {
  static auto* const all = new Links;
  return *all;
}

Link link_of(const Communicator& communicator) {
  const std::lock_guard<std::mutex> lock(links().mutex);
  for (const Link& one : links().all) {
    if (one.get() == &communicator) return one;
  }
  throw std::runtime_error("there is no such communicator");
}

/// Adds work that ends early if the communicator is aborted.
template <class Work>
void add_work(Communicator& communicator, Stream& stream, const Work& work) {
  add(stream, [link = link_of(communicator), work] {
    try {
      link->check();
      work(*link);
    } catch (const Aborted&) {
    }
  });
}

/// Calls `use(begin, end)` for parts of `bytes` with at most `most` bytes.
template <class Use>
void in_parts(std::size_t bytes, std::size_t most, const Use& use) {
  for (std::size_t begin = 0; begin < bytes; begin += most) {
    use(begin, std::min(begin + most, bytes));
  }
}

template <class T, class Combine>
void combine_all(void* into, const std::vector<const char*>& parts, std::size_t bytes,
                 const Combine& combine) {
  auto* const to = static_cast<T*>(into);
  const std::size_t count = bytes / sizeof(T);
  std::memmove(into, parts[0], bytes);
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const T* const from = reinterpret_cast<const T*>(parts[part]);
    for (std::size_t i = 0; i < count; ++i) to[i] = combine(to[i], from[i]);
  }
}

/// Reduces `parts`, one of each rank and in their order, so that every rank gets the same bits.
template <class T>
void reduce_as(Reduce how, void* into, const std::vector<const char*>& parts, std::size_t bytes) {
  const auto all = [&](auto combine) { combine_all<T>(into, parts, bytes, combine); };
  switch (how) {
    case Reduce::kSum:
    case Reduce::kAverage:
      all([](T a, T b) { return static_cast<T>(a + b); });
      break;
    case Reduce::kProduct:
      all([](T a, T b) { return static_cast<T>(a * b); });
      break;
    case Reduce::kMin:
      all([](T a, T b) { return std::min(a, b); });
      break;
    case Reduce::kMax:
      all([](T a, T b) { return std::max(a, b); });
      break;
    default:
      if constexpr (std::is_integral_v<T>) {
        if (how == Reduce::kBitAnd) all([](T a, T b) { return static_cast<T>(a & b); });
        if (how == Reduce::kBitOr) all([](T a, T b) { return static_cast<T>(a | b); });
        if (how == Reduce::kBitXor) all([](T a, T b) { return static_cast<T>(a ^ b); });
      }
  }
  if (how == Reduce::kAverage) {
    auto* const to = static_cast<T*>(into);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) to[i] /= static_cast<T>(parts.size());
  }
}

void reduce_parts(NumberType type, Reduce how, void* into, const std::vector<const char*>& parts,
                  std::size_t bytes) {
  switch (type) {
    case NumberType::kUInt8:
      return reduce_as<std::uint8_t>(how, into, parts, bytes);
    case NumberType::kInt8:
      return reduce_as<std::int8_t>(how, into, parts, bytes);
    case NumberType::kInt16:
      return reduce_as<std::int16_t>(how, into, parts, bytes);
    case NumberType::kInt32:
      return reduce_as<std::int32_t>(how, into, parts, bytes);
    case NumberType::kInt64:
      return reduce_as<std::int64_t>(how, into, parts, bytes);
    case NumberType::kFloat32:
      return reduce_as<float>(how, into, parts, bytes);
    default:
      return reduce_as<double>(how, into, parts, bytes);
  }
}

/// A message, and how far it has come.
struct Message {
  Communicator* communicator;
  Stream* stream;
  char* data;
  std::size_t bytes;
  int peer;
  bool is_sent;
  std::size_t done = 0;

  bool is_like(const Message& other) const {
    return peer == other.peer && is_sent == other.is_sent;
  }

  /// Moves the next bytes, if there is room for them or if they have come.
  bool step(Communicator& between) {
    const int from = is_sent ? between.rank() : peer;
    const int to = is_sent ? peer : between.rank();
    std::atomic<std::uint32_t>& there = between.message_bytes(from, to);
    if ((there == 0) != is_sent) return false;
    const std::size_t count = is_sent ? std::min(kMessage, bytes - done) : there.load();
    if (count > bytes - done) {
      between.fail("rank " + std::to_string(peer) + " sends more than this one receives");
      return false;
    }
    char* const place = between.message(from, to);
    std::memcpy(is_sent ? place : data + done, is_sent ? data + done : place, count);
    there = is_sent ? static_cast<std::uint32_t>(count) : 0;
    done += count;
    return true;
  }
};

struct Group {
  int depth = 0;
  std::vector<Message> messages;
};
thread_local Group group;

/// Moves all messages, whichever can go on; those between two ranks in their order.
void move_all(Communicator& between, std::vector<Message> messages) {
  const auto forget_complete = [&] {
    std::erase_if(messages, [](const Message& one) { return one.done == one.bytes; });
  };
  for (forget_complete(); !messages.empty(); forget_complete()) {
    Communicator::Wait wait(between, messages.front().peer);
    bool moved = false;
    while (!moved) {
      for (auto one = messages.begin(); one != messages.end(); ++one) {
        const auto before = std::find_if(messages.begin(), one,
                                         [&](const Message& other) { return one->is_like(other); });
        if (before == one && one->step(between)) moved = true;
      }
      if (!moved) wait.once();
    }
  }
}

void add_message(const Message& message) {
  begin_group();
  group.messages.push_back(message);
  end_group();
}

}  // namespace

std::string communicator_id() {
  const char* const wanted = std::getenv("FOO_SIMULATOR_COLLECTIVES");
  if (wanted != nullptr && std::string(wanted) == "0") return "";
  std::random_device random;
  const std::string number = std::to_string(getpid()) + "-" + std::to_string(random());
  return std::string(kFolder) + "/foo-" + number + " of " + machine();
}

Communicator* create_communicator(const std::string& id, int rank, int size,
                                  std::chrono::milliseconds timeout) {
  const std::size_t end = id.find(" of ");
  if (id.substr(end + 4) != machine()) {
    throw std::runtime_error(
        "simulated devices of several machines have no collectives: set the variable "
        "FOO_SIMULATOR_COLLECTIVES=0 on all of them");
  }
  auto made = std::make_shared<Communicator>(id.substr(0, end), rank, size, timeout);
  const std::lock_guard<std::mutex> lock(links().mutex);
  return links().all.emplace_back(std::move(made)).get();
}

void destroy(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(links().mutex);
  std::erase_if(links().all, [=](const Link& one) { return one.get() == communicator; });
}

void abort(Communicator& communicator) { communicator.abort(); }

std::string error_of(Communicator& communicator) { return communicator.error(); }

bool can_reduce(NumberType type) {
  return type != NumberType::kFloat16 && type != NumberType::kBFloat16;
}

std::size_t bytes_of(NumberType type) {
  switch (type) {
    case NumberType::kUInt8:
    case NumberType::kInt8:
      return 1;
    case NumberType::kInt16:
    case NumberType::kFloat16:
    case NumberType::kBFloat16:
      return 2;
    case NumberType::kInt32:
    case NumberType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

// Each rank shows a chunk, reduces its share of what all show, and takes the result.
void all_reduce(Communicator& communicator, Stream& stream, void* part, std::size_t count,
                NumberType type, Reduce reduce) {
  add_work(communicator, stream, [=](Communicator& all) {
    const std::size_t width = bytes_of(type);
    in_parts(count * width, kChunk, [&](std::size_t begin, std::size_t end) {
      char* const data = static_cast<char*>(part) + begin;
      std::memcpy(all.slot(all.rank()), data, end - begin);
      all.meet();
      const auto place = [&](int rank) {
        const std::size_t numbers = (end - begin) / width;
        return numbers * static_cast<std::size_t>(rank) / static_cast<std::size_t>(all.size()) *
               width;
      };
      const std::size_t first = place(all.rank());
      std::vector<const char*> parts;
      for (int rank = 0; rank < all.size(); ++rank) parts.push_back(all.slot(rank) + first);
      reduce_parts(type, reduce, all.result() + first, parts, place(all.rank() + 1) - first);
      all.meet();
      std::memcpy(data, all.result(), end - begin);
    });
  });
}

void reduce_scatter(Communicator& communicator, Stream& stream, void* part, const void* all_parts,
                    std::size_t count, NumberType type, Reduce reduce) {
  add_work(communicator, stream, [=](Communicator& all) {
    const std::size_t bytes = count * bytes_of(type);
    const std::size_t most = kChunk / static_cast<std::size_t>(all.size()) / 8 * 8;
    in_parts(bytes, most, [&](std::size_t begin, std::size_t end) {
      for (int rank = 0; rank < all.size(); ++rank) {
        const auto place = static_cast<std::size_t>(rank);
        std::memcpy(all.slot(all.rank()) + place * most,
                    static_cast<const char*>(all_parts) + place * bytes + begin, end - begin);
      }
      all.meet();
      std::vector<const char*> parts;
      for (int rank = 0; rank < all.size(); ++rank) {
        parts.push_back(all.slot(rank) + static_cast<std::size_t>(all.rank()) * most);
      }
      reduce_parts(type, reduce, static_cast<char*>(part) + begin, parts, end - begin);
      all.meet();
    });
  });
}

void all_gather(Communicator& communicator, Stream& stream, void* all_parts, const void* part,
                std::size_t bytes) {
  add_work(communicator, stream, [=](Communicator& all) {
    in_parts(bytes, kChunk, [&](std::size_t begin, std::size_t end) {
      std::memcpy(all.slot(all.rank()), static_cast<const char*>(part) + begin, end - begin);
      all.meet();
      for (int rank = 0; rank < all.size(); ++rank) {
        std::memcpy(static_cast<char*>(all_parts) + static_cast<std::size_t>(rank) * bytes + begin,
                    all.slot(rank), end - begin);
      }
      all.meet();
    });
  });
}

void broadcast(Communicator& communicator, Stream& stream, void* data, std::size_t bytes,
               int root) {
  add_work(communicator, stream, [=](Communicator& all) {
    in_parts(bytes, kChunk, [&](std::size_t begin, std::size_t end) {
      char* const part = static_cast<char*>(data) + begin;
      // Not the result of all: a rank may not have read that of the last all_reduce yet.
      if (all.rank() == root) std::memcpy(all.slot(root), part, end - begin);
      all.meet();
      if (all.rank() != root) std::memcpy(part, all.slot(root), end - begin);
      all.meet();
    });
  });
}

void send(Communicator& communicator, Stream& stream, const void* data, std::size_t bytes,
          int peer) {
  auto* const bytes_to_send = static_cast<char*>(const_cast<void*>(data));
  add_message({&communicator, &stream, bytes_to_send, bytes, peer, true});
}

void recv(Communicator& communicator, Stream& stream, void* data, std::size_t bytes, int peer) {
  add_message({&communicator, &stream, static_cast<char*>(data), bytes, peer, false});
}

void begin_group() { ++group.depth; }

void end_group() {
  if (--group.depth > 0) return;
  std::vector<Message> messages = std::move(group.messages);
  group.messages.clear();
  while (!messages.empty()) {
    const Message first = messages.front();
    const auto others =
        std::stable_partition(messages.begin(), messages.end(), [&](const Message& one) {
          return one.communicator == first.communicator && one.stream == first.stream;
        });
    std::vector<Message> together(messages.begin(), others);
    messages.erase(messages.begin(), others);
    add_work(*first.communicator, *first.stream,
             [together](Communicator& between) { move_all(between, together); });
  }
}

}  // namespace foo::simulator
