// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include <sys/mman.h>

namespace backendkit {

/// A range of the process's addresses that nothing can access, not even by mistake, and from which
/// parts are handed out. It costs no memory, and the operating system places nothing else there.
/// Not thread-safe. The range is kept until the process ends.
class AddressRange {
 public:
  /// The largest range that the process gets, of at least `least` and at most `wanted` bytes; none,
  /// so that `take` returns 0, if the process's addresses are used up or limited.
  AddressRange(std::size_t least, std::size_t wanted) {
    for (std::size_t bytes = wanted; bytes >= least && bytes > 0; bytes /= 2) {
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
      void* const begin = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
      if (begin == MAP_FAILED) continue;
      const auto first = reinterpret_cast<std::uintptr_t>(begin);
      free_.emplace(first, first + bytes / kUnit * kUnit);
      return;
    }
  }

  /// The first of `bytes` addresses, a multiple of `kUnit`; 0 if there are not so many in a row. A
  /// unit that belongs to nobody follows them, so that what runs over the end hits nothing.
  std::uintptr_t take(std::size_t bytes) {
    const std::size_t length = with_gap(bytes);
    if (length < bytes) return 0;
    for (auto place = free_.begin(); place != free_.end(); ++place) {
      const auto [begin, end] = *place;
      if (end - begin < length) continue;
      free_.erase(place);
      if (begin + length < end) free_.emplace(begin + length, end);
      return begin;
    }
    return 0;
  }

  /// Takes back what `take` returned for the same number of bytes.
  void give_back(std::uintptr_t begin, std::size_t bytes) {
    std::uintptr_t end = begin + with_gap(bytes);
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == end) {
      end = after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      if (const auto before = std::prev(after); before->second == begin) {
        before->second = end;
        return;
      }
    }
    free_.emplace_hint(after, begin, end);
  }

  static constexpr std::size_t kUnit = 4096;

 private:
  static std::size_t with_gap(std::size_t bytes) {
    return (bytes + kUnit - 1) / kUnit * kUnit + kUnit;
  }

  std::map<std::uintptr_t, std::uintptr_t> free_;  ///< parts that nobody has: begin, end
};

}  // namespace backendkit
