// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace backendkit {

/// What happened to memory.
enum class MemoryAction {
  kAlloc,          // a tensor was given a block
  kFreeRequested,  // the tensor freed it
  kFreeCompleted,  // no stream uses the block any more
  kSegmentAlloc,   // the driver allocated a segment
  kSegmentFree,    // a segment was returned to the driver
  kOutOfMemory,    // the driver had no memory
};

/// The name that PyTorch's memory viewer uses.
constexpr std::string_view name_of(MemoryAction action) {
  switch (action) {
    case MemoryAction::kAlloc:
      return "alloc";
    case MemoryAction::kFreeRequested:
      return "free_requested";
    case MemoryAction::kFreeCompleted:
      return "free_completed";
    case MemoryAction::kSegmentAlloc:
      return "segment_alloc";
    case MemoryAction::kSegmentFree:
      return "segment_free";
    case MemoryAction::kOutOfMemory:
      return "oom";
  }
  return "";
}

struct MemoryEvent {
  MemoryAction action = MemoryAction::kAlloc;
  std::uintptr_t address = 0;  // for kOutOfMemory, the bytes that the driver had free, 0 if unknown
  std::size_t bytes = 0;       // for a block, those requested, as PyTorch records them for CUDA
  std::int64_t stream = 0;
  std::int64_t time_us = 0;  // since 1970
};

/// An allocator's latest events, recorded on request. Not thread-safe.
class MemoryHistory {
 public:
  /// Sets the number of events to keep; 0 stops recording and forgets all events.
  void set_capacity(std::size_t most) {
    most_ = most;
    while (events_.size() > most_) events_.pop_front();
  }

  void add(MemoryAction action, std::uintptr_t address, std::size_t bytes, std::int64_t stream) {
    if (most_ == 0) return;
    if (events_.size() == most_) events_.pop_front();
    using namespace std::chrono;
    const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch());
    events_.push_back({action, address, bytes, stream, now.count()});
  }

  void add(MemoryAction action, const void* address, std::size_t bytes, std::int64_t stream) {
    add(action, reinterpret_cast<std::uintptr_t>(address), bytes, stream);
  }

  std::vector<MemoryEvent> events() const { return {events_.begin(), events_.end()}; }

 private:
  std::size_t most_ = 0;
  std::deque<MemoryEvent> events_;
};

}  // namespace backendkit
