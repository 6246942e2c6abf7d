// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace backendkit {

/// A part of a segment of a CachingAllocator: the memory of a tensor, or free.
struct MemoryBlock {
  /// What is asked of the free blocks: the smallest one of a stream that is large enough.
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
  std::size_t requested = 0;      // by the tensor that has it
  int device = 0;                 // of the allocator
  std::int64_t stream = 0;        // whose work uses it; free, it goes to tensors of this stream
  bool small = false;             // of the small pool
  bool allocated = false;         // a tensor has it
  std::size_t events = 0;         // that have to be done before it is free
  MemoryBlock* before = nullptr;  // neighbours in the segment
  MemoryBlock* after = nullptr;
  std::vector<std::int64_t> users;  // other streams that use it
  Free::iterator place;             // of a free one, among the free ones

  bool free() const { return !allocated && events == 0; }
  bool split() const { return before != nullptr || after != nullptr; }
};

/// A segment and its blocks, as `CachingAllocator::snapshot` describes it.
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
  std::vector<Block> blocks;  // in the order of their addresses
};

}  // namespace backendkit
