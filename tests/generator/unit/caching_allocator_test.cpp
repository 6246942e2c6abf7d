// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <backendkit/memory/caching_allocator.h>

#include "catch.h"

using namespace backendkit;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A device in memory that does not exist: addresses are counted up, work is done when it is said.
struct World {
  std::size_t total = std::size_t{1} << 40;
  std::size_t used = 0;
  std::uintptr_t next = 1 << 20;
  std::map<std::uintptr_t, std::size_t> segments;
  std::set<int> recorded;
  std::set<int> done;
  int events = 0;
  int allocations = 0;
  int synchronized = 0;
  bool broken = false;
  std::set<std::int64_t> recording;  // streams that cannot have an event
};

struct FakeDriver {
  using Event = int;
  World* world = nullptr;

  void* allocate(std::size_t bytes) {
    ++world->allocations;
    if (world->broken) throw std::runtime_error("the driver is broken");
    if (world->used + bytes > world->total) return nullptr;
    const std::uintptr_t address = world->next;
    world->next += bytes + 4096;
    world->used += bytes;
    world->segments[address] = bytes;
    return reinterpret_cast<void*>(address);
  }
  void deallocate(void* pointer, std::size_t bytes) {
    const auto found = world->segments.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == world->segments.end() || found->second != bytes) std::abort();
    world->used -= bytes;
    world->segments.erase(found);
  }
  void synchronize() {
    ++world->synchronized;
    world->done = world->recorded;
  }
  std::optional<Event> record(std::int64_t stream) {
    if (world->broken) throw std::runtime_error("the driver is broken");
    if (world->recording.contains(stream)) return std::nullopt;
    world->recorded.insert(++world->events);
    return world->events;
  }
  bool done(Event event) { return world->done.contains(event); }
  void destroy(Event event) {
    if (world->recorded.erase(event) != 1) std::abort();
  }
};
static_assert(MemoryDriver<FakeDriver>);

struct Fixture {
  World world;
  CachingAllocator<FakeDriver> allocator{FakeDriver{&world}};

  std::int64_t reserved() const { return allocator.statistics().reserved_bytes.all().current; }
};

std::uintptr_t address(const MemoryBlock* block) {
  return reinterpret_cast<std::uintptr_t>(block->pointer);
}

/// What the snapshot says must be what the statistics say.
void check_books(const CachingAllocator<FakeDriver>& allocator, const World& world) {
  const MemoryStatistics statistics = allocator.statistics();
  std::int64_t reserved = 0, allocated = 0, active = 0, inactive = 0, count = 0, requested = 0;
  const auto segments = allocator.snapshot();
  bool sound = true;
  for (const MemorySegment& segment : segments) {
    const auto known = world.segments.find(segment.address);
    sound &= known != world.segments.end() && known->second == segment.bytes;
    std::size_t sum = 0;
    bool was_free = false;
    for (const MemorySegment::Block& block : segment.blocks) {
      sum += block.bytes;
      const auto bytes = static_cast<std::int64_t>(block.bytes);
      count += block.allocated;
      requested += static_cast<std::int64_t>(block.requested);
      allocated += block.allocated ? bytes : 0;
      active += block.active ? bytes : 0;
      inactive += !block.active && segment.blocks.size() > 1 ? bytes : 0;
      sound &= !was_free || block.active;  // free neighbours are one block
      was_free = !block.active;
    }
    sound &= sum == segment.bytes;
    reserved += static_cast<std::int64_t>(segment.bytes);
  }
  REQUIRE(sound);
  REQUIRE(segments.size() == world.segments.size());
  REQUIRE(static_cast<std::size_t>(reserved) == world.used);
  CHECK(statistics.segment.all().current == static_cast<std::int64_t>(segments.size()));
  CHECK(statistics.reserved_bytes.all().current == reserved);
  CHECK(statistics.allocated_bytes.all().current == allocated);
  CHECK(statistics.active_bytes.all().current == active);
  CHECK(statistics.inactive_split_bytes.all().current == inactive);
  CHECK(statistics.allocation.all().current == count);
  CHECK(statistics.requested_bytes.all().current == requested);
  statistics.for_each([](std::string_view name, const MemoryStatistics::Figures& figures) {
    INFO(name);
    const auto* figure = figures.begin();
    CHECK(figure[0].current == figure[1].current + figure[2].current);
    CHECK(figure[0].current == figure[0].allocated - figure[0].freed);
    CHECK(figure[0].peak >= figure[0].current);
  });
}

}  // namespace

TEST_CASE("sizes are rounded, and segments cut", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(1, 0);
  REQUIRE(a != nullptr);
  CHECK(a->bytes == 512);
  CHECK(a->requested == 1);
  CHECK(f.reserved() == 2 * static_cast<std::int64_t>(kMiB));
  MemoryBlock* b = f.allocator.allocate(513, 0);
  CHECK(b->bytes == 1024);
  CHECK(address(b) == address(a) + 512);
  CHECK(f.world.allocations == 1);
  MemoryBlock* large = f.allocator.allocate(kMiB + 1, 0);
  CHECK(f.world.segments.at(address(large)) == 20 * kMiB);
  MemoryBlock* larger = f.allocator.allocate(25 * kMiB + 1, 0);
  CHECK(f.world.segments.at(address(larger)) == 25 * kMiB + kMiB / 4);
  CHECK(larger->bytes == 25 * kMiB + kMiB / 4);  // what is over stays in the block
  check_books(f.allocator, f.world);
  for (MemoryBlock* block : {a, b, large, larger}) f.allocator.free(block);
  check_books(f.allocator, f.world);
  CHECK(f.allocator.statistics().inactive_split.all().current == 0);
  f.allocator.empty_cache();
  CHECK(f.world.used == 0);
}

TEST_CASE("the smallest free block that is large enough is taken", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(4096, 0);
  MemoryBlock* wall = f.allocator.allocate(512, 0);
  MemoryBlock* b = f.allocator.allocate(2048, 0);
  MemoryBlock* wall2 = f.allocator.allocate(512, 0);
  const std::uintptr_t small = address(b);
  f.allocator.free(a);
  f.allocator.free(b);
  CHECK(address(f.allocator.allocate(1600, 0)) == small);
  check_books(f.allocator, f.world);
  f.allocator.free(wall);
  f.allocator.free(wall2);
  check_books(f.allocator, f.world);
}

TEST_CASE("what is freed is used again, on its own stream only", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(5 * kMiB, 1);
  const std::uintptr_t place = address(a);
  f.allocator.free(a);
  MemoryBlock* other = f.allocator.allocate(5 * kMiB, 2);
  CHECK(address(other) != place);
  CHECK(address(f.allocator.allocate(5 * kMiB, 1)) == place);
  CHECK(f.world.allocations == 2);
}

TEST_CASE("a block that another stream uses waits for its event", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(100, 0);
  const std::uintptr_t place = address(a);
  f.allocator.record_stream(a, 7);
  f.allocator.record_stream(a, 7);
  f.allocator.record_stream(a, 8);
  f.allocator.record_stream(a, 0);  // its own
  f.allocator.free(a);
  CHECK(f.world.events == 2);
  check_books(f.allocator, f.world);
  CHECK(f.allocator.statistics().active.all().current == 1);
  CHECK(f.allocator.statistics().allocation.all().current == 0);
  CHECK(address(f.allocator.allocate(100, 0)) != place);
  f.world.done = {1};
  CHECK(address(f.allocator.allocate(100, 0)) != place);
  f.world.done = {1, 2};
  CHECK(address(f.allocator.allocate(100, 0)) == place);
  CHECK(f.world.recorded.empty());
  check_books(f.allocator, f.world);
}

TEST_CASE("a block waits until a stream that records can have its event", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(100, 0);
  const std::uintptr_t place = address(a);
  f.allocator.record_stream(a, 7);
  f.world.recording = {7};
  f.allocator.free(a);
  CHECK(f.world.events == 0);
  check_books(f.allocator, f.world);
  CHECK(address(f.allocator.allocate(100, 0)) != place);
  f.world.recording = {};
  CHECK(address(f.allocator.allocate(100, 0)) != place);
  CHECK(f.world.events == 1);
  f.world.done = {1};
  CHECK(address(f.allocator.allocate(100, 0)) == place);
  CHECK(f.world.recorded.empty());
  check_books(f.allocator, f.world);
}

TEST_CASE("what a stream records does not keep memory from being returned", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(100, 0);
  f.allocator.record_stream(a, 7);
  f.world.recording = {7};
  f.allocator.free(a);
  f.allocator.empty_cache();
  CHECK(f.world.segments.empty());
  CHECK(f.world.events == 0);
}

TEST_CASE("a block is found by an address", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* const before = f.allocator.allocate(100, 0);
  MemoryBlock* const block = f.allocator.allocate(1000, 0);
  MemoryBlock* const freed = f.allocator.allocate(100, 0);
  f.allocator.free(freed);
  char foreign = 0;
  CHECK_FALSE(f.allocator.record_stream_at(nullptr, 7));
  CHECK_FALSE(f.allocator.record_stream_at(&foreign, 7));
  CHECK_FALSE(f.allocator.record_stream_at(block->pointer + block->bytes, 7));
  CHECK(f.allocator.record_stream_at(block->pointer, 7));
  CHECK(f.allocator.record_stream_at(block->pointer + block->bytes - 1, 8));
  f.allocator.free(before);
  CHECK(f.world.events == 0);
  f.allocator.free(block);
  CHECK(f.world.events == 2);
  check_books(f.allocator, f.world);
}

TEST_CASE("events are looked at in the order of each stream", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(kMiB, 0);
  MemoryBlock* b = f.allocator.allocate(kMiB, 0);
  const std::uintptr_t place = address(b);
  f.allocator.record_stream(a, 1);
  f.allocator.record_stream(b, 2);
  f.allocator.free(a);
  f.allocator.free(b);
  f.world.done = {2};
  CHECK(address(f.allocator.allocate(kMiB, 0)) == place);
}

TEST_CASE("a full device gives back what is cached, then less, then nothing",
          "[caching_allocator]") {
  Fixture f;
  f.world.total = 24 * kMiB;
  MemoryBlock* a = f.allocator.allocate(15 * kMiB, 1);
  f.allocator.free(a);
  MemoryBlock* b = f.allocator.allocate(16 * kMiB, 2);  // needs what stream 1 has cached
  REQUIRE(b != nullptr);
  CHECK(f.world.synchronized == 1);
  CHECK(f.allocator.statistics().num_alloc_retries == 1);
  MemoryBlock* c = f.allocator.allocate(5 * kMiB, 2);  // 20 MiB are not there, 5 are
  REQUIRE(c != nullptr);
  CHECK(f.world.segments.at(address(c)) == 5 * kMiB);
  CHECK(f.allocator.allocate(5 * kMiB, 2) == nullptr);
  CHECK(f.allocator.statistics().num_ooms == 1);
  CHECK(f.allocator.allocate(std::numeric_limits<std::size_t>::max(), 2) == nullptr);
  check_books(f.allocator, f.world);
  f.allocator.free(b);
  REQUIRE(f.allocator.allocate(5 * kMiB, 2) != nullptr);
  check_books(f.allocator, f.world);
}

TEST_CASE("a segment of its own is not added beside as much that is unused",
          "[caching_allocator]") {
  Fixture f;
  MemoryBlock* blocks[] = {f.allocator.allocate(30 * kMiB, 0), f.allocator.allocate(40 * kMiB, 0),
                           f.allocator.allocate(50 * kMiB, 0)};
  MemoryBlock* other = f.allocator.allocate(60 * kMiB, 1);
  MemoryBlock* used = f.allocator.allocate(8 * kMiB, 0);
  for (MemoryBlock* const block : blocks) f.allocator.free(block);
  f.allocator.free(other);
  CHECK(f.reserved() == 200 * static_cast<std::int64_t>(kMiB));

  // The two largest go, which have 90 MiB; a smaller one, another stream's and a used one stay.
  MemoryBlock* large = f.allocator.allocate(80 * kMiB, 0);
  CHECK(f.reserved() == 190 * static_cast<std::int64_t>(kMiB));
  CHECK(f.world.synchronized == 1);
  CHECK(f.allocator.statistics().num_device_free == 2);
  CHECK(f.allocator.statistics().num_alloc_retries == 0);

  // The 30 MiB that are left are less than what is asked for.
  MemoryBlock* more = f.allocator.allocate(32 * kMiB - 1, 0);
  CHECK(f.reserved() == 222 * static_cast<std::int64_t>(kMiB));
  CHECK(f.world.synchronized == 1);
  for (MemoryBlock* const block : {large, more, used}) f.allocator.free(block);
  check_books(f.allocator, f.world);
}

TEST_CASE("memory that waits for a stream is had in need", "[caching_allocator]") {
  Fixture f;
  f.world.total = 16 * kMiB;
  MemoryBlock* a = f.allocator.allocate(16 * kMiB, 1);
  f.allocator.record_stream(a, 2);
  f.allocator.free(a);
  REQUIRE(f.allocator.allocate(16 * kMiB, 3) != nullptr);
  check_books(f.allocator, f.world);
}

TEST_CASE("segments may not be more than the limit", "[caching_allocator]") {
  Fixture f;
  f.allocator.set_limit(4 * kMiB);
  MemoryBlock* a = f.allocator.allocate(1, 0);
  MemoryBlock* b = f.allocator.allocate(2 * kMiB, 0);
  REQUIRE((a != nullptr && b != nullptr));
  CHECK(f.allocator.allocate(2 * kMiB, 0) == nullptr);
  f.allocator.set_limit(24 * kMiB);
  CHECK(f.allocator.allocate(2 * kMiB, 0) != nullptr);
}

TEST_CASE("what the driver throws changes nothing", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(100, 0);
  f.world.broken = true;
  CHECK_THROWS_AS(f.allocator.allocate(3 * kMiB, 0), std::runtime_error);
  check_books(f.allocator, f.world);
  f.allocator.record_stream(a, 1);
  CHECK_THROWS_AS(f.allocator.free(a), std::runtime_error);
  f.world.broken = false;
  const std::uintptr_t place = address(a);
  CHECK(address(f.allocator.allocate(100, 0)) != place);
  check_books(f.allocator, f.world);
}

TEST_CASE("peaks and sums begin anew when they are reset", "[caching_allocator]") {
  Fixture f;
  MemoryBlock* a = f.allocator.allocate(kMiB, 0);
  MemoryBlock* b = f.allocator.allocate(kMiB, 0);
  f.allocator.free(a);
  MemoryFigure bytes = f.allocator.statistics().allocated_bytes.all();
  CHECK(bytes.current == static_cast<std::int64_t>(kMiB));
  CHECK(bytes.peak == static_cast<std::int64_t>(2 * kMiB));
  CHECK(bytes.allocated == static_cast<std::int64_t>(2 * kMiB));
  f.allocator.reset_peak();
  f.allocator.reset_accumulated();
  bytes = f.allocator.statistics().allocated_bytes.all();
  CHECK(bytes.peak == static_cast<std::int64_t>(kMiB));
  CHECK(bytes.allocated == 0);
  CHECK(f.allocator.statistics().num_device_alloc == 0);
  f.allocator.free(b);
  CHECK(f.allocator.statistics().allocated_bytes.all().freed == static_cast<std::int64_t>(kMiB));
}

TEST_CASE("the latest events are remembered when asked for", "[caching_allocator]") {
  Fixture f;
  f.allocator.free(f.allocator.allocate(1, 0));
  CHECK(f.allocator.history().empty());
  f.allocator.record_history(4);
  MemoryBlock* a = f.allocator.allocate(3 * kMiB, 5);
  f.allocator.record_stream(a, 6);
  f.allocator.free(a);
  f.world.total = 0;
  CHECK(f.allocator.allocate(64 * kMiB, 5) == nullptr);
  f.allocator.remember_out_of_memory(64 * kMiB, 5, 7);
  const auto events = f.allocator.history();
  REQUIRE(events.size() == 4);
  CHECK(events[0].action == MemoryAction::kFreeCompleted);
  CHECK(events[1].action == MemoryAction::kSegmentFree);
  CHECK(events[2].action == MemoryAction::kSegmentFree);
  CHECK(events[3].action == MemoryAction::kOutOfMemory);
  CHECK(events[3].bytes == 64 * kMiB);
  CHECK(events[3].address == 7);
  CHECK(events[0].stream == 5);
  CHECK(events[0].time_us > 0);
  f.allocator.record_history(0);
  CHECK(f.allocator.history().empty());
}

TEST_CASE("events tell what was asked for, and segments as they are", "[caching_allocator]") {
  Fixture f;
  f.allocator.record_history(10);
  MemoryBlock* a = f.allocator.allocate(100, 0);
  f.allocator.record_stream(a, 1);
  f.allocator.free(a);
  f.allocator.empty_cache();
  std::vector<std::pair<MemoryAction, std::size_t>> events;
  for (const MemoryEvent& event : f.allocator.history()) {
    events.emplace_back(event.action, event.bytes);
  }
  CHECK(events ==
        std::vector<std::pair<MemoryAction, std::size_t>>{{MemoryAction::kSegmentAlloc, 2 * kMiB},
                                                          {MemoryAction::kAlloc, 100},
                                                          {MemoryAction::kFreeRequested, 100},
                                                          {MemoryAction::kFreeCompleted, 100},
                                                          {MemoryAction::kSegmentFree, 2 * kMiB}});
}

TEST_CASE("books are right after any sequence of calls", "[caching_allocator]") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Fixture f;
    f.world.total = (32 + 16 * (seed % 5)) * kMiB;
    std::vector<MemoryBlock*> blocks;
    const auto below = [&](std::size_t end) { return random() % end; };
    for (int turn = 0; turn < 3000; ++turn) {
      const std::size_t choice = below(20);
      if (choice < 9) {
        const std::size_t bytes = below(3) != 0 ? 1 + below(64 * 1024) : 1 + below(6 * kMiB);
        MemoryBlock* block = f.allocator.allocate(bytes, static_cast<std::int64_t>(below(3)));
        if (block == nullptr) continue;
        if (block->bytes < bytes || !block->allocated) FAIL("a block is not what it should be");
        blocks.push_back(block);
      } else if (choice < 17 && !blocks.empty()) {
        std::swap(blocks[below(blocks.size())], blocks.back());
        f.allocator.free(blocks.back());
        blocks.pop_back();
      } else if (choice == 17 && !blocks.empty()) {
        f.allocator.record_stream(blocks[below(blocks.size())],
                                  static_cast<std::int64_t>(below(3)));
      } else if (choice == 18) {
        for (const int event : f.world.recorded) {
          if (below(2) != 0) f.world.done.insert(event);
        }
      } else if (below(20) == 0) {
        f.allocator.empty_cache();
      }
      if (turn % 50 == 0) check_books(f.allocator, f.world);
    }
    for (MemoryBlock* block : blocks) f.allocator.free(block);
    f.allocator.empty_cache();
    check_books(f.allocator, f.world);
    REQUIRE(f.world.used == 0);
    REQUIRE(f.world.recorded.empty());
  }
}
