// SPDX-License-Identifier: Apache-2.0
// Measures the caching allocator of the device's memory; memory.py builds and runs it.
//
//   allocator cost            nanoseconds: a hit, its free, the driver's allocate, its deallocate
//   allocator replay < TRACE  bytes while the allocator has the most of the driver: those that
//                             tensors asked for, at most; those of their blocks then; the driver's
//
// A line of a trace is `+ BLOCK BYTES STREAM`, where a tensor asks for BYTES, or `- BLOCK`.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <backendkit/memory/caching_allocator.h>

#include "simulator.h"

namespace {

using Clock = std::chrono::steady_clock;

/// The simulator's memory, without work that would use it.
struct Simulator {
  using Event = int;
  void* allocate(std::size_t bytes) { return foo::simulator::allocate(bytes, 0); }
  void deallocate(void* pointer, std::size_t bytes) {
    foo::simulator::deallocate(pointer, bytes, 0);
  }
  void synchronize() {}
  Event record(std::int64_t) { return 0; }
  bool done(Event) { return true; }
  void destroy(Event) {}
};

using Allocator = backendkit::CachingAllocator<Simulator>;

double nanoseconds(Clock::time_point start, std::size_t count) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(count);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Tensors come and go while a thousand others stay, all of sizes as in training.
void cost() {
  constexpr std::size_t kCount = 200;
  constexpr int kTurns = 301;
  const std::size_t sizes[] = {4, 512, 2048, 65536, 1 << 20, 4 << 20, 16 << 20};
  std::minstd_rand random(1);
  std::vector<std::size_t> wanted(kCount);
  for (std::size_t& bytes : wanted) bytes = sizes[random() % std::size(sizes)];

  Allocator allocator;
  std::vector<backendkit::MemoryBlock*> staying, blocks(kCount);
  for (int i = 0; i < 1000; ++i) staying.push_back(allocator.allocate(sizes[random() % 5], 0));
  std::vector<double> hits, frees, allocations, deallocations;
  std::vector<void*> pointers(kCount);
  for (int turn = 0; turn < kTurns; ++turn) {
    auto start = Clock::now();
    for (std::size_t i = 0; i < kCount; ++i) blocks[i] = allocator.allocate(wanted[i], 0);
    const double hit = nanoseconds(start, kCount);
    std::shuffle(blocks.begin(), blocks.end(), random);
    start = Clock::now();
    for (backendkit::MemoryBlock* const block : blocks) allocator.free(block);
    const double free = nanoseconds(start, kCount);
    start = Clock::now();
    for (std::size_t i = 0; i < kCount; ++i) pointers[i] = Simulator().allocate(wanted[i]);
    const double allocation = nanoseconds(start, kCount);
    start = Clock::now();
    for (std::size_t i = 0; i < kCount; ++i) Simulator().deallocate(pointers[i], wanted[i]);
    const double deallocation = nanoseconds(start, kCount);
    if (turn == 0) continue;  // it fills the cache
    hits.push_back(hit);
    frees.push_back(free);
    allocations.push_back(allocation);
    deallocations.push_back(deallocation);
  }
  std::printf("%g %g %g %g\n", median(hits), median(frees), median(allocations),
              median(deallocations));
  for (backendkit::MemoryBlock* const block : staying) allocator.free(block);
}

/// The moment that fragmentation is told of: tensors have asked for the most while the driver's
/// memory is at its peak. A peak of tensors at another moment would hide what is unused at this
/// one.
struct Moment {
  std::int64_t requested = 0;
  std::int64_t blocks = 0;
  std::int64_t reserved = 0;

  void look(const backendkit::MemoryStatistics& now) {
    const Moment other{now.requested_bytes.all().current, now.allocated_bytes.all().current,
                       now.reserved_bytes.all().current};
    if (std::tie(other.reserved, other.requested) > std::tie(reserved, requested)) *this = other;
  }
};

int replay() {
  Allocator allocator;
  Moment moment;
  std::unordered_map<std::string, backendkit::MemoryBlock*> blocks;
  std::string action, name;
  while (std::cin >> action >> name) {
    if (action == "+") {
      std::size_t bytes = 0;
      std::int64_t stream = 0;
      std::cin >> bytes >> stream;
      backendkit::MemoryBlock* const block = allocator.allocate(bytes, stream);
      if (block == nullptr || !blocks.emplace(name, block).second) return 1;
      moment.look(allocator.statistics());
    } else {
      const auto block = blocks.find(name);
      if (block == blocks.end()) return 1;
      allocator.free(block->second);
      blocks.erase(block);
    }
  }
  std::printf("%lld %lld %lld\n", static_cast<long long>(moment.requested),
              static_cast<long long>(moment.blocks), static_cast<long long>(moment.reserved));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "replay") == 0) return replay();
  cost();
  return 0;
}
