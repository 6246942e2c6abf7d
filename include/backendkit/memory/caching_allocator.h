// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <backendkit/memory/memory_block.h>
#include <backendkit/memory/memory_driver.h>
#include <backendkit/memory/memory_history.h>
#include <backendkit/memory/memory_statistics.h>

namespace backendkit {

/// The memory of one device, cached: freed memory is kept for later tensors, because a driver's own
/// calls are slow and wait for the device. Works like PyTorch's allocator for CUDA: blocks are cut
/// from the driver's segments, sizes are multiples of 512 bytes, blocks of at most 512 KiB come
/// from segments of 2 MiB, larger ones from segments of 20 MiB or of their own size. Free
/// neighbouring blocks are merged. Unlike CUDA's, a segment for one block is rounded up to 256 KiB,
/// not 2 MiB. Before it is added, unused smaller segments of the stream are returned to the driver
/// if together they have as much memory, so that sizes that vary from step to step leave no useless
/// segments behind.
///
/// A block belongs to the stream for which it was allocated. Since that stream's work runs in
/// order, the block can be freed before the work completes and given to the stream's next tensor.
/// For each other stream that uses it, as noted by `record_stream`, an event is recorded when the
/// block is freed, or later if the stream cannot have one then.
///
/// Thread-safe. If the driver throws, the exception is passed on and nothing has changed.
template <MemoryDriver Driver>
class CachingAllocator : public MemorySizes {
 public:
  explicit CachingAllocator(Driver driver = {}, int device = 0)
      : driver_(std::move(driver)), device_(device) {}

  /// Frees all memory; no tensor may still have a block.
  ~CachingAllocator() {
    finish_all();
    for (const auto& [address, segment] : segments_) {
      driver_.deallocate(address, segment.bytes);
      for (const MemoryBlock* block = segment.first; block != nullptr;) {
        delete std::exchange(block, block->after);
      }
    }
  }
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// A block of at least `bytes`, and at least one byte, for work on `stream`. Null if there is not
  /// enough memory even after the whole cache has been freed, or if the limit would be exceeded.
  MemoryBlock* allocate(std::size_t bytes, std::int64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > std::numeric_limits<std::size_t>::max() - kLargeSegment) return out();
    free_unused();
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kRound);
    const bool small = size <= kSmall;
    MemoryBlock* block = take(size, stream, small);
    if (block == nullptr) {
      if (size > kLargeSegment / 2) free_unused_segments(segment_for(size), stream);
      block = add_segment(segment_for(size), stream, small);
    }
    if (block == nullptr) {
      ++statistics_.num_alloc_retries;
      free_cache();
      block = take(size, stream, small);  // an event may have completed meanwhile
      if (block == nullptr) block = add_segment(segment_for(size), stream, small);
      if (block == nullptr) block = add_segment(size, stream, small);
      if (block == nullptr) return out();
    }
    const std::size_t rest = block->bytes - size;  // a free block, if it is large enough
    if (small ? rest >= kRound : rest > kSmall) insert(block->cut(size));
    block->allocated = true;
    block->requested = bytes;
    statistics_.allocation.add(small, 1);
    statistics_.allocated_bytes.add(small, block->bytes);
    statistics_.requested_bytes.add(small, bytes);
    statistics_.active.add(small, 1);
    statistics_.active_bytes.add(small, block->bytes);
    history_.add(MemoryAction::kAlloc, block->pointer, bytes, stream);
    return block;
  }

  /// Frees a block that `allocate` returned. If the driver throws while it records an event, the
  /// block is never used again.
  void free(MemoryBlock* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    history_.add(MemoryAction::kFreeRequested, block->pointer, block->requested, block->stream);
    statistics_.allocation.remove(block->small, 1);
    statistics_.allocated_bytes.remove(block->small, block->bytes);
    statistics_.requested_bytes.remove(block->small, block->requested);
    const std::vector<std::int64_t> users = std::exchange(block->users, {});
    block->events = users.size();
    block->allocated = false;
    for (const std::int64_t user : users) {
      waiting_[user].emplace_back(driver_.record(user), block);
      ++waiting_events_;
    }
    if (block->events == 0) put(block);
  }

  /// Notes that work on another stream uses an allocated block.
  void record_stream(MemoryBlock* block, std::int64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    block->used_by(stream);
  }

  /// The same for the block that contains an address. False if no allocated block contains it.
  bool record_stream_at(const void* address, std::int64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    MemoryBlock* const block = block_at(address);
    if (block == nullptr || !block->allocated) return false;
    block->used_by(stream);
    return true;
  }

  /// Returns all segments without a used block to the driver.
  void empty_cache() {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_cache();
  }

  /// Keeps a stream's segments, the free ones too, until `release`: a graph's runs use them.
  void keep(std::int64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.insert(stream);
  }

  /// Returns those without a used block to the driver; the others become like all segments.
  void release(std::int64_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.erase(stream);
    driver_.synchronize();
    free_segments([stream](const MemoryBlock& block) { return block.stream == stream; });
  }

  /// Limits the total bytes of segments; exceeding it counts as out of memory.
  void set_limit(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
  }

  MemoryStatistics statistics() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return statistics_;
  }

  void reset_peak() {
    const std::lock_guard<std::mutex> lock(mutex_);
    statistics_.reset_peak();
  }

  void reset_accumulated() {
    const std::lock_guard<std::mutex> lock(mutex_);
    statistics_.reset_accumulated();
  }

  /// All segments, by address.
  std::vector<MemorySegment> snapshot() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<MemorySegment> segments;
    for (const auto& [address, segment] : segments_) {
      const MemoryBlock* block = segment.first;
      const auto place = reinterpret_cast<std::uintptr_t>(address);
      segments.push_back({place, segment.bytes, block->stream, block->small, {}});
      for (; block != nullptr; block = block->after) {
        segments.back().blocks.push_back({block->bytes, block->allocated ? block->requested : 0,
                                          block->allocated, !block->free()});
      }
    }
    return segments;
  }

  /// Whether an address is in a segment.
  bool has(const void* address) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return block_at(address) != nullptr;
  }

  /// Records the latest `most` events from now on; 0 stops recording.
  void record_history(std::size_t most) {
    const std::lock_guard<std::mutex> lock(mutex_);
    history_.set_capacity(most);
  }

  /// Adds to the history that the device was out of memory while the driver had `free` bytes.
  void remember_out_of_memory(std::size_t bytes, std::int64_t stream, std::size_t free) {
    const std::lock_guard<std::mutex> lock(mutex_);
    history_.add(MemoryAction::kOutOfMemory, free, bytes, stream);
  }

  std::vector<MemoryEvent> history() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return history_.events();
  }

 private:
  struct Segment {
    std::size_t bytes;
    MemoryBlock* first;  // never changes: a block is merged into the one before it
  };

  /// The block that contains an address; null if there is none.
  MemoryBlock* block_at(const void* address) const {
    char* const wanted = static_cast<char*>(const_cast<void*>(address));
    const auto after = segments_.upper_bound(wanted);
    if (after == segments_.begin()) return nullptr;
    MemoryBlock* block = std::prev(after)->second.first;
    while (block != nullptr && wanted >= block->pointer + block->bytes) block = block->after;
    return block;
  }

  MemoryBlock::Free& free_blocks(bool small) { return small ? small_ : large_; }

  /// A free block, removed from its pool, possibly larger than requested; null if there is none.
  MemoryBlock* take(std::size_t bytes, std::int64_t stream, bool small) {
    MemoryBlock::Free& blocks = free_blocks(small);
    const auto found = blocks.lower_bound(MemoryBlock::Wanted{stream, bytes});
    if (found == blocks.end() || (*found)->stream != stream) return nullptr;
    MemoryBlock* const block = *found;
    remove(block);
    return block;
  }

  void remove(MemoryBlock* block) {
    if (block->split()) {
      statistics_.inactive_split.remove(block->small, 1);
      statistics_.inactive_split_bytes.remove(block->small, block->bytes);
    }
    spare_.push_back(free_blocks(block->small).extract(block->place));
  }

  void insert(MemoryBlock* block) {
    if (block->split()) {
      statistics_.inactive_split.add(block->small, 1);
      statistics_.inactive_split_bytes.add(block->small, block->bytes);
    }
    MemoryBlock::Free& blocks = free_blocks(block->small);
    if (spare_.empty()) {
      block->place = blocks.insert(block).first;
    } else {
      spare_.back().value() = block;
      block->place = blocks.insert(std::move(spare_.back())).position;
      spare_.pop_back();
    }
  }

  /// A block that is a whole new segment, in no pool; null if there is not enough memory.
  MemoryBlock* add_segment(std::size_t bytes, std::int64_t stream, bool small) {
    const auto reserved = static_cast<std::size_t>(statistics_.reserved_bytes.all().current);
    if (bytes > limit_ || reserved > limit_ - bytes) return nullptr;
    auto block = std::make_unique<MemoryBlock>();
    void* const pointer = driver_.allocate(bytes);
    if (pointer == nullptr) return nullptr;
    block->pointer = static_cast<char*>(pointer);
    block->bytes = bytes;
    block->device = device_;
    block->stream = stream;
    block->small = small;
    segments_.emplace(block->pointer, Segment{bytes, block.get()});
    ++statistics_.num_device_alloc;
    statistics_.segment.add(small, 1);
    statistics_.reserved_bytes.add(small, bytes);
    history_.add(MemoryAction::kSegmentAlloc, pointer, bytes, stream);
    return block.release();
  }

  /// Returns an unused block to its pool, merged with its free neighbours.
  void put(MemoryBlock* block) {
    statistics_.active.remove(block->small, 1);
    statistics_.active_bytes.remove(block->small, block->bytes);
    history_.add(MemoryAction::kFreeCompleted, block->pointer, block->requested, block->stream);
    if (block->after != nullptr && block->after->free()) {
      remove(block->after);
      block->swallow();
    }
    if (block->before != nullptr && block->before->free()) {
      block = block->before;
      remove(block);
      block->swallow();
    }
    insert(block);
  }

  /// Frees the blocks whose events have completed; for each stream, up to the first that has not.
  void free_unused() {
    if (waiting_events_ == 0) return;
    for (auto& [stream, events] : waiting_) {
      while (!events.empty() && done(stream, events.front().first)) finish_first(events);
    }
  }

  using Event = std::optional<typename Driver::Event>;  // nothing until the stream can have it
  using Waiting = std::deque<std::pair<Event, MemoryBlock*>>;

  bool done(std::int64_t stream, Event& event) {
    if (!event) event = driver_.record(stream);
    return event && driver_.done(*event);
  }

  void finish_first(Waiting& events) {
    const auto [event, block] = events.front();
    events.pop_front();
    --waiting_events_;
    if (event) driver_.destroy(*event);
    if (--block->events == 0) put(block);
  }

  void finish_all() {
    for (auto& [stream, events] : waiting_) {
      while (!events.empty()) finish_first(events);
    }
  }

  /// Waits for all work, which may use freed blocks, and returns the segments that are entirely
  /// free to the driver. What a stream records does not run, so it does not use them.
  void free_cache() {
    driver_.synchronize();
    ++statistics_.num_sync_all_streams;
    finish_all();
    free_segments([this](const MemoryBlock& block) { return !kept_.contains(block.stream); });
  }

  template <class Which>
  void free_segments(const Which& which) {
    for (auto segment = segments_.begin(); segment != segments_.end();) {
      MemoryBlock* const block = segment->second.first;
      if (!block->free() || block->split() || !which(*block)) {
        ++segment;
        continue;
      }
      segment = segments_.erase(segment);
      give_back(block);
    }
  }

  /// Returns a stream's large, entirely free segments to the driver if together they have as many
  /// bytes: only as many of the largest as necessary.
  void free_unused_segments(std::size_t bytes, std::int64_t stream) {
    if (kept_.contains(stream)) return;
    std::vector<MemoryBlock*> unused;
    std::size_t found = 0;
    for (auto block = large_.lower_bound(MemoryBlock::Wanted{stream, 0});
         block != large_.end() && (*block)->stream == stream; ++block) {
      if ((*block)->split()) continue;
      unused.push_back(*block);
      found += (*block)->bytes;
    }
    if (found < bytes) return;
    driver_.synchronize();
    ++statistics_.num_sync_all_streams;
    for (std::size_t freed = 0; freed < bytes; unused.pop_back()) {
      freed += unused.back()->bytes;
      segments_.erase(unused.back()->pointer);
      give_back(unused.back());
    }
  }

  /// Returns a free block that is a whole segment to the driver.
  void give_back(MemoryBlock* block) {
    free_blocks(block->small).erase(block->place);
    ++statistics_.num_device_free;
    statistics_.segment.remove(block->small, 1);
    statistics_.reserved_bytes.remove(block->small, block->bytes);
    history_.add(MemoryAction::kSegmentFree, block->pointer, block->bytes, block->stream);
    driver_.deallocate(block->pointer, block->bytes);
    delete block;
  }

  MemoryBlock* out() {
    ++statistics_.num_ooms;
    return nullptr;
  }

  mutable std::mutex mutex_;
  Driver driver_;
  const int device_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  MemoryBlock::Free small_;
  MemoryBlock::Free large_;
  std::vector<MemoryBlock::Free::node_type> spare_;  // nodes of allocated blocks, for reuse
  std::map<char*, Segment> segments_;
  std::set<std::int64_t> kept_;              // streams
  std::map<std::int64_t, Waiting> waiting_;  // by stream, in the order of its work
  std::size_t waiting_events_ = 0;
  MemoryStatistics statistics_;
  MemoryHistory history_;
};

}  // namespace backendkit
