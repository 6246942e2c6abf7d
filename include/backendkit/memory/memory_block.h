// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

namespace backendkit {

/// The sizes of blocks and segments, in bytes.
struct MemorySizes {
  static constexpr std::size_t kRound = 512;
  static constexpr std::size_t kSmall = std::size_t{512} << 10;  // the largest small block
  static constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
  static constexpr std::size_t kLargeSegment = std::size_t{20} << 20;  // blocks up to half of it
  /// Rounding of larger segments: so small that the remainder is not worth a block, and less than 3
  /// %.
  static constexpr std::size_t kRoundSegment = std::size_t{256} << 10;

  static std::size_t round_up(std::size_t bytes, std::size_t to) {
    return (bytes + to - 1) / to * to;
  }

  /// The size of the segment to request from the driver for a block.
  static std::size_t segment_for(std::size_t bytes) {
    if (bytes <= kSmall) return kSmallSegment;
    if (bytes <= kLargeSegment / 2) return kLargeSegment;
    return round_up(bytes, kRoundSegment);
  }
};

/// A part of a CachingAllocator's segment: the memory of a tensor, or free.
struct MemoryBlock {
  /// A search among the free blocks: for a stream's smallest block that is large enough.
  struct Wanted {
    std::int64_t stream;
    std::size_t bytes;
  };

  struct BySize {
    using is_transparent = void;
    bool operator()(const MemoryBlock* a, const MemoryBlock* b) const {
      return std::tie(a->stream, a->bytes, a->pointer) < std::tie(b->stream, b->bytes, b->pointer);
    }
    bool operator()(const MemoryBlock* a, const Wanted& b) const {
      return std::tie(a->stream, a->bytes) < std::tie(b.stream, b.bytes);
    }
  };
  using Free = std::set<MemoryBlock*, BySize>;

  char* pointer = nullptr;
  std::size_t bytes = 0;
  std::size_t requested = 0;      // by the tensor that uses it
  int device = 0;                 // of the allocator
  std::int64_t stream = 0;        // that uses it; when free, it goes to tensors of this stream
  bool small = false;             // in the small pool
  bool allocated = false;         // a tensor uses it
  std::size_t events = 0;         // that must complete before it is free
  MemoryBlock* before = nullptr;  // neighbours in the segment
  MemoryBlock* after = nullptr;
  std::vector<std::int64_t> users;  // other streams that use it
  Free::iterator place;             // of a free block, among the free blocks

  bool free() const { return !allocated && events == 0; }
  bool split() const { return before != nullptr || after != nullptr; }

  /// Shrinks the block to so many bytes; returns the rest, its new neighbour.
  MemoryBlock* cut(std::size_t to) {
    auto* const other = new MemoryBlock;
    other->pointer = pointer + to;
    other->bytes = bytes - to;
    other->device = device;
    other->stream = stream;
    other->small = small;
    other->before = this;
    other->after = after;
    if (after != nullptr) after->before = other;
    after = other;
    bytes = to;
    return other;
  }

  /// Merges the next block into this one.
  void swallow() {
    const std::unique_ptr<MemoryBlock> other(after);
    bytes += other->bytes;
    after = other->after;
    if (after != nullptr) after->before = this;
  }

  /// Notes that work on a stream uses the block.
  void used_by(std::int64_t other) {
    if (other == stream) return;
    if (std::find(users.begin(), users.end(), other) == users.end()) users.push_back(other);
  }
};

/// A segment and its blocks, as `CachingAllocator::snapshot` returns them.
struct MemorySegment {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::int64_t stream = 0;
  bool small = false;
  struct Block {
    std::size_t bytes = 0;
    std::size_t requested = 0;
    bool allocated = false;
    bool active = false;  // allocated, or a stream may still use it
  };
  std::vector<Block> blocks;  // by address
};

}  // namespace backendkit
