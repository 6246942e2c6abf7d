// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace backendkit {

/// One statistic of a memory allocator, like c10::CachingAllocator::Stat.
struct MemoryFigure {
  std::int64_t current = 0;
  std::int64_t peak = 0;       // since the last `reset_peak`
  std::int64_t allocated = 0;  // total of all additions, and
  std::int64_t freed = 0;      // of all removals, since the last `reset_accumulated`

  void add(std::int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
    allocated += amount;
  }
  void remove(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

/// What PyTorch reports about a device's memory, with the names of torch.cuda.memory_stats.
struct MemoryStatistics {
  /// A statistic for all blocks, for the small pool, and for the large pool.
  class Figures {
   public:
    static constexpr std::array<std::string_view, 3> kPools = {"all", "small_pool", "large_pool"};

    void add(bool small, std::size_t amount) {
      figures_[0].add(static_cast<std::int64_t>(amount));
      figures_[small ? 1 : 2].add(static_cast<std::int64_t>(amount));
    }
    void remove(bool small, std::size_t amount) {
      figures_[0].remove(static_cast<std::int64_t>(amount));
      figures_[small ? 1 : 2].remove(static_cast<std::int64_t>(amount));
    }
    const MemoryFigure& all() const { return figures_[0]; }
    auto begin() { return figures_.begin(); }
    auto end() { return figures_.end(); }
    auto begin() const { return figures_.begin(); }
    auto end() const { return figures_.end(); }

   private:
    std::array<MemoryFigure, 3> figures_;
  };

  Figures allocation;      // blocks that tensors use
  Figures segment;         // segments requested from the driver
  Figures active;          // blocks that tensors use, or that a stream may still use
  Figures inactive_split;  // free blocks in segments with active blocks

  Figures allocated_bytes;  // of these blocks
  Figures reserved_bytes;   // of the segments
  Figures active_bytes;
  Figures inactive_split_bytes;
  Figures requested_bytes;  // requested bytes, before rounding

  std::int64_t num_alloc_retries = 0;     // times the cache was freed for lack of memory
  std::int64_t num_ooms = 0;              // times that did not help
  std::int64_t num_sync_all_streams = 0;  // waits for all streams, to free their memory
  std::int64_t num_device_alloc = 0;      // calls to the driver
  std::int64_t num_device_free = 0;

  /// Calls `visit(name, statistic)` for each of the nine.
  template <class Visit>
  void for_each(const Visit& visit) {
    each(*this, visit);
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    each(*this, visit);
  }

  void reset_peak() {
    for_each([](std::string_view, Figures& figures) {
      for (MemoryFigure& figure : figures) figure.peak = figure.current;
    });
  }

  void reset_accumulated() {
    for_each([](std::string_view, Figures& figures) {
      for (MemoryFigure& figure : figures) figure.allocated = figure.freed = 0;
    });
    num_alloc_retries = num_ooms = num_sync_all_streams = num_device_alloc = num_device_free = 0;
  }

 private:
  template <class Self, class Visit>
  static void each(Self& self, const Visit& visit) {
    visit("allocation", self.allocation);
    visit("segment", self.segment);
    visit("active", self.active);
    visit("inactive_split", self.inactive_split);
    visit("allocated_bytes", self.allocated_bytes);
    visit("reserved_bytes", self.reserved_bytes);
    visit("active_bytes", self.active_bytes);
    visit("inactive_split_bytes", self.inactive_split_bytes);
    visit("requested_bytes", self.requested_bytes);
  }
};

}  // namespace backendkit
