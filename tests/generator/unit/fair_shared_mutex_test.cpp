// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <backendkit/memory/fair_shared_mutex.h>

#include "catch.h"

using backendkit::FairSharedMutex;

namespace {

/// Returns once so many threads wait for the mutex.
void until_waiting(const FairSharedMutex& mutex, std::uint64_t count) {
  while (mutex.waiting() != count) std::this_thread::yield();
}

}  // namespace

TEST_CASE("several threads share a fair mutex at once", "[fair_shared_mutex]") {
  FairSharedMutex mutex;
  const std::shared_lock<FairSharedMutex> lock(mutex);
  std::thread([&] { const std::shared_lock<FairSharedMutex> other(mutex); }).join();
  CHECK(mutex.waiting() == 0);
}

TEST_CASE("no thread overtakes another one that waits for a fair mutex", "[fair_shared_mutex]") {
  constexpr int kThreads = 9;
  FairSharedMutex mutex;
  std::mutex order_mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  mutex.lock_shared();
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const auto note = [&] {
        const std::lock_guard<std::mutex> lock(order_mutex);
        order.push_back(number / 3);
      };
      if (number % 3 == 0) {
        const std::lock_guard<FairSharedMutex> lock(mutex);
        note();
      } else {
        const std::shared_lock<FairSharedMutex> lock(mutex);
        note();
      }
    });
    until_waiting(mutex, static_cast<std::uint64_t>(number) + 1);
  }
  CHECK(order.empty());
  mutex.unlock_shared();
  for (std::thread& thread : threads) thread.join();
  CHECK(order == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("a fair mutex excludes", "[fair_shared_mutex]") {
  FairSharedMutex mutex;
  std::vector<std::thread> threads;
  long first = 0;
  long second = 0;
  std::atomic<long> wrong{0};
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int turn = 0; turn < 2000; ++turn) {
        if ((turn + number) % 3 == 0) {
          const std::lock_guard<FairSharedMutex> lock(mutex);
          ++first;
          ++second;
        } else {
          const std::shared_lock<FairSharedMutex> lock(mutex);
          if (first != second) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(first == second);
}
