// SPDX-License-Identifier: Apache-2.0
#include "base/on_all_cores.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace backendgen {

void on_all_cores(std::size_t count, std::size_t together,
                  const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kMostThreads = 8;  // more of them wait for the memory allocator
  const std::size_t cores = std::thread::hardware_concurrency();  // 0 when unknown
  const std::size_t threads = std::min({cores, kMostThreads, (count + together - 1) / together});
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t begin; (begin = next.fetch_add(together)) < count;) {
      for (std::size_t i = begin; i < std::min(count, begin + together); ++i) work(i);
    }
  };
  std::vector<std::future<void>> others;  // wait for their thread when they are destroyed
  try {
    while (others.size() + 1 < threads) others.push_back(std::async(std::launch::async, take));
  } catch (const std::system_error&) {
    // The system has no more threads for us: those there are, this one at least, do it all.
  }
  take();
  for (std::future<void>& other : others) other.get();
}

}  // namespace backendgen
