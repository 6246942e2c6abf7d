// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <backendkit/handles.h>

#include "catch.h"

using backendkit::BufferHandle;
using backendkit::locate;
using backendkit::Location;
using backendkit::map_buffer;
using backendkit::unmap_buffer;

namespace {

BufferHandle handle_of(std::uintptr_t number) {
  return reinterpret_cast<BufferHandle>(number);
}

char* bytes_of(void* address) {
  return static_cast<char*>(address);
}

}  // namespace

TEST_CASE("a mapped buffer is found from each of its bytes", "[handles]") {
  constexpr std::size_t kBytes = 10'000;
  char* const address = bytes_of(map_buffer(handle_of(7), kBytes, 3));
  REQUIRE(address != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(address) % 4096 == 0);
  for (const std::size_t offset : {0UL, 1UL, 4096UL, kBytes - 1}) {
    const Location found = locate(address + offset);
    CHECK(found.handle == handle_of(7));
    CHECK(found.offset == offset);
    CHECK(found.device == 3);
  }
  CHECK(unmap_buffer(address) == handle_of(7));
}

TEST_CASE("what is not in a mapped buffer is refused", "[handles]") {
  char* const address = bytes_of(map_buffer(handle_of(1), 100, 0));
  char* const next = bytes_of(map_buffer(handle_of(2), 100, 0));
  CHECK_THROWS_AS(locate(address - 1), std::out_of_range);
  CHECK_THROWS_AS(locate(address + 100), std::out_of_range);
  CHECK_THROWS_AS(locate(next - 1), std::out_of_range);
  CHECK_THROWS_AS(locate(nullptr), std::out_of_range);
  CHECK_THROWS_AS(locate(&address), std::out_of_range);
  CHECK(locate(address + 99, 1).offset == 99);
  CHECK(locate(address, 100).offset == 0);
  CHECK_THROWS_AS(locate(address, 101), std::out_of_range);
  CHECK_THROWS_AS(locate(address + 99, 2), std::out_of_range);
  CHECK_THROWS_AS(locate(address + 1, std::numeric_limits<std::size_t>::max()), std::out_of_range);
  CHECK_THROWS_AS(unmap_buffer(address + 1), std::out_of_range);
  CHECK(unmap_buffer(address) == handle_of(1));
  CHECK_THROWS_AS(unmap_buffer(address), std::out_of_range);
  CHECK_THROWS_AS(locate(address), std::out_of_range);
  CHECK(locate(next).handle == handle_of(2));
  CHECK(unmap_buffer(next) == handle_of(2));
}

TEST_CASE("more bytes than there are addresses cannot be mapped", "[handles]") {
  CHECK(map_buffer(handle_of(1), std::numeric_limits<std::size_t>::max(), 0) == nullptr);
  CHECK(map_buffer(handle_of(1), std::size_t{1} << 60, 0) == nullptr);
  // More than a device's first range.
  void* const large = map_buffer(handle_of(1), std::size_t{1} << 40, 0);
  REQUIRE(large != nullptr);
  CHECK(locate(bytes_of(large) + (std::size_t{1} << 39)).offset == std::size_t{1} << 39);
  unmap_buffer(large);
}

TEST_CASE("addresses are used again, and parts grow together", "[handles]") {
  constexpr std::size_t kLarge = std::size_t{100} << 30;  // a fifth of a range
  std::set<void*> seen;
  for (int round = 0; round < 100; ++round) {
    std::array<void*, 4> parts{};
    for (void*& part : parts) part = map_buffer(handle_of(1), kLarge, 5);
    const std::array<int, 4> order =
        round % 2 == 0 ? std::array{0, 1, 2, 3} : std::array{2, 0, 3, 1};
    for (const int place : order) {
      seen.insert(parts.at(place));
      unmap_buffer(parts.at(place));
    }
    void* const whole = map_buffer(handle_of(2), 4 * kLarge, 5);
    seen.insert(whole);
    unmap_buffer(whole);
  }
  CHECK(seen.size() == 4);
}

TEST_CASE("buffers of many sizes never overlap", "[handles]") {
  struct Mapped {
    char* address;
    std::size_t bytes;
    std::uintptr_t number;
  };
  std::mt19937 random(17);
  std::vector<Mapped> mapped;
  for (std::uintptr_t number = 1; number <= 20'000; ++number) {
    if (mapped.size() > 300 || (!mapped.empty() && random() % 3 == 0)) {
      const std::size_t place = random() % mapped.size();
      REQUIRE(unmap_buffer(mapped[place].address) == handle_of(mapped[place].number));
      mapped[place] = mapped.back();
      mapped.pop_back();
    }
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 31));
    mapped.push_back({bytes_of(map_buffer(handle_of(number), bytes, 1)), bytes, number});
  }
  for (const Mapped& one : mapped) {
    const std::size_t offset = random() % one.bytes;
    const Location found = locate(one.address + offset, one.bytes - offset);
    REQUIRE(found.handle == handle_of(one.number));
    REQUIRE(found.offset == offset);
  }
  for (const Mapped& one : mapped) unmap_buffer(one.address);
}

TEST_CASE("threads map, find and unmap buffers at the same time", "[handles]") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread, &wrong] {
      for (std::uintptr_t round = 1; round <= 5'000; ++round) {
        const BufferHandle handle = handle_of(thread * 10'000 + round);
        char* const address = bytes_of(map_buffer(handle, 512 * round, 2));
        const Location found = locate(address + 511 * round);
        if (found.handle != handle || found.offset != 511 * round) ++wrong;
        if (unmap_buffer(address) != handle) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
