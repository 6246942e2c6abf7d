// SPDX-License-Identifier: Apache-2.0
// Threads that allocate, use, lend and free memory at once: for the thread and address sanitizers,
// and for what they do not see: memory that two tensors have, or that a stream still works on.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <backendkit/memory/caching_allocator.h>

namespace {

constexpr int kThreads = 8;
constexpr int kOperations = 150'000;  // of each thread
constexpr std::size_t kDevice = std::size_t{192} << 20;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "error: %s\n", what);
  std::exit(1);
}

/// A stream for each thread, whose work is done some time after it was asked for.
struct Stream {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> done{0};
};
std::array<Stream, kThreads> streams;
std::atomic<std::size_t> used{0};

struct Driver {
  struct Event {
    std::int64_t stream;
    std::uint64_t number;
  };

  void* allocate(std::size_t bytes) {
    if (used.fetch_add(bytes) + bytes > kDevice) {
      used.fetch_sub(bytes);
      return nullptr;
    }
    return std::calloc(bytes, 1);
  }
  void deallocate(void* pointer, std::size_t bytes) {
    used.fetch_sub(bytes);
    std::free(pointer);
  }
  void synchronize() {
    for (Stream& stream : streams) finish(stream);
  }
  std::optional<Event> record(std::int64_t stream) {
    static std::atomic<unsigned> calls = 0;
    const std::uint64_t work = ++streams[static_cast<std::size_t>(stream)].recorded;
    if (calls++ % 7 == 0) return std::nullopt;  // the stream cannot have an event now
    return Event{stream, work};
  }
  bool done(Event event) {
    return streams[static_cast<std::size_t>(event.stream)].done >= event.number;
  }
  void destroy(Event) {}

  static void finish(Stream& stream) {
    const std::uint64_t now = stream.recorded;
    std::uint64_t before = stream.done;
    while (before < now && !stream.done.compare_exchange_weak(before, now)) {
    }
  }
};

using Allocator = backendkit::CachingAllocator<Driver>;

/// What the first bytes of a block say: who has it, or which work must be done before it is had.
struct Mark {
  std::uint64_t owner;
  std::uint64_t stream;
  std::uint64_t number;
};
static_assert(sizeof(Mark) <= Allocator::kRound);

Mark& mark_of(backendkit::MemoryBlock* block) {
  return *reinterpret_cast<Mark*>(block->pointer);
}

/// A block that a thread hands to another one, which frees it.
struct Exchange {
  std::mutex mutex;
  std::vector<backendkit::MemoryBlock*> blocks;
};
Exchange exchange;

void give_back(Allocator& allocator, backendkit::MemoryBlock* block, std::uint64_t owner,
               std::int64_t user) {
  Mark& mark = mark_of(block);
  if (mark.owner != owner) fail("a block was given to two tensors");
  if (block->pointer[block->bytes - 1] != static_cast<char>(owner)) fail("a block's end is lost");
  const bool lent = user >= 0 && user != block->stream;
  if (lent) allocator.record_stream(block, user);
  const auto index = static_cast<std::size_t>(lent ? user : 0);
  mark = {0, index, lent ? streams[index].recorded + 1 : 0};
  allocator.free(block);
}

void work(Allocator& allocator, int thread) {
  std::mt19937 random(static_cast<unsigned>(thread));
  const auto below = [&](std::size_t end) { return random() % end; };
  std::vector<std::pair<backendkit::MemoryBlock*, std::uint64_t>> mine;
  std::uint64_t next = static_cast<std::uint64_t>(thread + 1) << 40;
  for (int turn = 0; turn < kOperations; ++turn) {
    const std::size_t choice = below(100);
    if (choice < 48) {
      const std::size_t bytes = below(20) == 0 ? 1 + below(3 << 20) : 1 + below(16 * 1024);
      backendkit::MemoryBlock* block = allocator.allocate(bytes, thread);
      if (block == nullptr) continue;
      const Mark mark = mark_of(block);
      if (mark.owner == 0 && streams.at(mark.stream).done < mark.number) {
        fail("a block is used again before a stream has done its work on it");
      }
      mark_of(block) = {++next, 0, 0};
      block->pointer[block->bytes - 1] = static_cast<char>(next);
      mine.emplace_back(block, next);
    } else if (choice < 90 && !mine.empty()) {
      std::swap(mine[below(mine.size())], mine.back());
      const auto [block, owner] = mine.back();
      mine.pop_back();
      const auto user = below(8) == 0 ? static_cast<std::int64_t>(below(kThreads)) : -1;
      give_back(allocator, block, owner, user);
    } else if (choice < 94 && !mine.empty()) {
      const std::lock_guard<std::mutex> lock(exchange.mutex);
      exchange.blocks.push_back(mine.back().first);
      mine.pop_back();
    } else if (choice < 98) {
      backendkit::MemoryBlock* block = nullptr;
      {
        const std::lock_guard<std::mutex> lock(exchange.mutex);
        if (!exchange.blocks.empty()) {
          block = exchange.blocks.back();
          exchange.blocks.pop_back();
        }
      }
      if (block != nullptr) give_back(allocator, block, mark_of(block).owner, thread);
    } else if (choice == 98) {
      Driver::finish(streams[static_cast<std::size_t>(thread)]);
    } else if (below(200) == 0) {
      allocator.empty_cache();
    } else if (below(100) == 0) {
      if (allocator.statistics().active.all().current < 0) fail("the books are wrong");
      if (allocator.snapshot().empty()) fail("a snapshot has no segment");
    }
  }
  for (const auto& [block, owner] : mine) give_back(allocator, block, owner, -1);
}

}  // namespace

int main() {
  Allocator allocator;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, std::ref(allocator), i);
  for (std::thread& thread : threads) thread.join();
  for (backendkit::MemoryBlock* block : exchange.blocks) {
    give_back(allocator, block, mark_of(block).owner, -1);
  }
  allocator.empty_cache();
  const backendkit::MemoryStatistics statistics = allocator.statistics();
  if (used != 0 || statistics.active.all().current != 0) fail("memory was lost");
  std::printf("%d operations by %d threads: %lld allocations, %lld retries, %lld out of memory\n",
              kThreads * kOperations, kThreads,
              static_cast<long long>(statistics.allocation.all().allocated),
              static_cast<long long>(statistics.num_alloc_retries),
              static_cast<long long>(statistics.num_ooms));
  return 0;
}
