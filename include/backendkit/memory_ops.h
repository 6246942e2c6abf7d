// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <torch/library.h>

#include <backendkit/allocator.h>

namespace backendkit {

/// The functions that the device's Python module calls through `torch.ops` to read and control its
/// memory; see templates/python. Devices must exist.
template <class Runtime>
class MemoryOperators {
 public:
  static void define_all(torch::Library& library) {
    library.def("empty_cache() -> ()", &empty_cache);
    library.def("memory_stats(int device) -> (str[], int[])", &stats);
    library.def("reset_peak_memory_stats(int device) -> ()", &reset_peak);
    library.def("reset_accumulated_memory_stats(int device) -> ()", &reset_accumulated);
    library.def("memory_info(int device) -> (int, int)", &info);
    library.def("set_memory_fraction(int device, float fraction) -> ()", &set_fraction);
    library.def("memory_fraction(int device) -> float", &fraction);
    library.def("memory_snapshot(int device) -> (int[], int[])", &snapshot);
    library.def("record_memory_history(int device, int most) -> ()", &record_history);
    library.def("memory_history(int device) -> (str[], int[])", &history);
  }

 private:
  using Memory = Allocator<Runtime>;

  static typename Memory::Cache& cache(std::int64_t device) {
    return Memory::cache(static_cast<int>(device));
  }

  static void empty_cache() { Memory::instance().emptyCache(); }
  static void reset_peak(std::int64_t device) { cache(device).reset_peak(); }
  static void reset_accumulated(std::int64_t device) { cache(device).reset_accumulated(); }

  /// "allocated_bytes.all.current" and the other names of torch.cuda.memory_stats, with their
  /// values.
  static std::tuple<std::vector<std::string>, std::vector<std::int64_t>> stats(
      std::int64_t device) {
    std::vector<std::string> names;
    std::vector<std::int64_t> figures;
    const auto add = [&](std::string name, std::int64_t figure) {
      names.push_back(std::move(name));
      figures.push_back(figure);
    };
    const MemoryStatistics statistics = cache(device).statistics();
    statistics.for_each([&](std::string_view name, const MemoryStatistics::Figures& all) {
      auto pool = MemoryStatistics::Figures::kPools.begin();
      for (const MemoryFigure& figure : all) {
        const std::string head = std::string(name) + "." + std::string(*pool++) + ".";
        add(head + "current", figure.current);
        add(head + "peak", figure.peak);
        add(head + "allocated", figure.allocated);
        add(head + "freed", figure.freed);
      }
    });
    add("num_alloc_retries", statistics.num_alloc_retries);
    add("num_ooms", statistics.num_ooms);
    add("num_sync_all_streams", statistics.num_sync_all_streams);
    add("num_device_alloc", statistics.num_device_alloc);
    add("num_device_free", statistics.num_device_free);
    return {std::move(names), std::move(figures)};
  }

  static std::tuple<std::int64_t, std::int64_t> info(std::int64_t device) {
    const MemoryInfo info = Memory::memory_info(static_cast<int>(device));
    return {static_cast<std::int64_t>(info.free), static_cast<std::int64_t>(info.total)};
  }

  static void set_fraction(std::int64_t device, double fraction) {
    Memory::set_fraction(static_cast<int>(device), fraction);
  }

  static double fraction(std::int64_t device) { return Memory::fraction(static_cast<int>(device)); }

  /// Rows of five: a segment's address, bytes, stream, whether it is small, and how many blocks it
  /// has. Rows of four for all blocks: bytes, requested bytes, allocated, active.
  static std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>> snapshot(
      std::int64_t device) {
    std::vector<std::int64_t> segments;
    std::vector<std::int64_t> blocks;
    const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
    for (const MemorySegment& one : cache(device).snapshot()) {
      segments.insert(segments.end(),
                      {number(one.address), number(one.bytes), Captures::stream_of(one.stream),
                       number(one.small), number(one.blocks.size())});
      for (const MemorySegment::Block& block : one.blocks) {
        blocks.insert(blocks.end(), {number(block.bytes), number(block.requested),
                                     number(block.allocated), number(block.active)});
      }
    }
    return {std::move(segments), std::move(blocks)};
  }

  static void record_history(std::int64_t device, std::int64_t most) {
    TORCH_CHECK_VALUE(most >= 0, "max_entries must not be negative, got ", most);
    cache(device).record_history(static_cast<std::size_t>(most));
  }

  /// The actions, and rows of four: address (for out of memory, the free bytes), bytes, stream,
  /// microseconds since 1970.
  static std::tuple<std::vector<std::string>, std::vector<std::int64_t>> history(
      std::int64_t device) {
    std::vector<std::string> actions;
    std::vector<std::int64_t> rows;
    for (const MemoryEvent& event : cache(device).history()) {
      actions.emplace_back(name_of(event.action));
      rows.insert(rows.end(),
                  {static_cast<std::int64_t>(event.address), static_cast<std::int64_t>(event.bytes),
                   Captures::stream_of(event.stream), event.time_us});
    }
    return {std::move(actions), std::move(rows)};
  }
};

}  // namespace backendkit
