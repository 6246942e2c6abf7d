// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace backendkit {

/// The memory that a driver has allocated and BackendKit has not freed, on all devices and on the
/// host. Detects a driver that returns the same memory twice, before two tensors use it.
/// Thread-safe; called only for segments, not for tensors.
class AllocatedMemory {
 public:
  /// Adds `bytes` at an address on a device, or on the host if `device` is negative. Returns false
  /// and adds nothing if they overlap memory that was added, or extend past the last address.
  bool add(int device, const void* address, std::size_t bytes) {
    const Place begin{device, reinterpret_cast<std::uintptr_t>(address)};
    if (bytes > std::numeric_limits<std::uintptr_t>::max() - begin.second) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto after = blocks_.lower_bound(begin);
    if (after != blocks_.end() && after->first < Place{device, begin.second + bytes}) return false;
    if (after != blocks_.begin()) {
      const auto& [before, length] = *std::prev(after);
      if (before.first == device && before.second + length > begin.second) return false;
    }
    blocks_.emplace_hint(after, begin, bytes);
    return true;
  }

  void remove(int device, const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase({device, reinterpret_cast<std::uintptr_t>(address)});
  }

 private:
  using Place = std::pair<int, std::uintptr_t>;

  std::mutex mutex_;
  std::map<Place, std::size_t> blocks_;
};

}  // namespace backendkit
