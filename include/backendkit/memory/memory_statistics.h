// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace backendkit {

/// One figure of a memory allocator, as c10::CachingAllocator::Stat.
struct MemoryFigure {
  std::int64_t current = 0;
  std::int64_t peak = 0;       // since the last `reset_peak`
  std::int64_t allocated = 0;  // all that was added, and
  std::int64_t freed = 0;      // all that was taken away, since the last `reset_accumulated`

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

/// What PyTorch reports of the memory of a device; the names are those of torch.cuda.memory_stats.
struct MemoryStatistics {
  /// A figure for all blocks, for those of the small pool, and for those of the large one.
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

  Figures allocation;      // blocks that tensors have
  Figures segment;         // what the driver was asked for
  Figures active;          // blocks that tensors have, or that a stream may still use
  Figures inactive_split;  // free blocks of segments of which other blocks are active

  Figures allocated_bytes;  // of these blocks
  Figures reserved_bytes;   // of the segments
  Figures active_bytes;
  Figures inactive_split_bytes;
  Figures requested_bytes;  // what was asked for, before rounding

  std::int64_t num_alloc_retries = 0;     // the cache was freed for the want of memory
  std::int64_t num_ooms = 0;              // and that did not help
  std::int64_t num_sync_all_streams = 0;  // all streams were waited for, to free their memory
  std::int64_t num_device_alloc = 0;      // calls of the driver
  std::int64_t num_device_free = 0;

  /// Calls `visit(name, figures)` for each of the nine.
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
