// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>

#include <backendkit/memory/address_range.h>

/// For drivers whose memory is a handle, such as a `cl_mem` or a `VkBuffer`, and not an address.
/// PyTorch knows memory by addresses, to which views add offsets. `map_buffer` gives a buffer
/// addresses that stand for its bytes; `locate` finds the buffer and the offset again:
///
///     void* allocate(std::size_t bytes, int device) {
///       Buffer* const buffer = create_buffer(bytes, device);
///       return buffer == nullptr ? nullptr : backendkit::map_buffer(buffer, bytes, device);
///     }
///
///     void deallocate(void* pointer, std::size_t, int) {
///       destroy_buffer(backendkit::unmap_buffer(pointer));
///     }
///
/// A device has its addresses in a range of its own, which nobody can access: what treats such an
/// address as host memory crashes at once. All functions may be called by several threads at once.
namespace backendkit {

/// What a driver has for a buffer: a pointer, or a number cast to one.
using BufferHandle = void*;

/// A byte of a buffer.
struct Location {
  BufferHandle handle = nullptr;
  std::size_t offset = 0;  ///< in bytes, from the beginning of the buffer
  int device = 0;          ///< the device for which the buffer was mapped
};

/// The addresses of all mapped buffers.
class MappedBuffers {
 public:
  void* map(BufferHandle handle, std::size_t bytes, int device) {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    std::list<AddressRange>& ranges = ranges_[device];
    for (AddressRange& range : ranges) {
      if (void* const mapped = map_in(range, handle, bytes, device)) return mapped;
    }
    const std::size_t least = bytes + 2 * AddressRange::kUnit;
    if (least < bytes) return nullptr;
    AddressRange& more = ranges.emplace_back(least, std::max(least, kRange));
    void* const mapped = map_in(more, handle, bytes, device);
    if (mapped == nullptr) ranges.pop_back();
    return mapped;
  }

  BufferHandle unmap(const void* address) {
    const std::lock_guard<std::shared_mutex> lock(mutex_);
    const auto found = buffers_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == buffers_.end()) refuse(address, 0, "is not the beginning of a mapped buffer");
    const Buffer buffer = found->second;
    buffers_.erase(found);
    buffer.range->give_back(reinterpret_cast<std::uintptr_t>(address), buffer.bytes);
    return buffer.handle;
  }

  Location locate(const void* address, std::size_t bytes) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto after = buffers_.upper_bound(place);
    if (after == buffers_.begin()) refuse(address, bytes, "is in no mapped buffer");
    const auto& [begin, buffer] = *std::prev(after);
    const std::size_t offset = place - begin;
    if (offset >= buffer.bytes) refuse(address, bytes, "is in no mapped buffer");
    if (bytes > buffer.bytes - offset) refuse(address, bytes, "leaves its buffer");
    return {buffer.handle, offset, buffer.device};
  }

 private:
  struct Buffer {
    BufferHandle handle;
    std::size_t bytes;
    int device;
    AddressRange* range;
  };

  /// Of a device's first range. 127 devices, and what else a process has, fit into 128 TiB.
  static constexpr std::size_t kRange = std::size_t{1} << 39;

  void* map_in(AddressRange& range, BufferHandle handle, std::size_t bytes, int device) {
    const std::uintptr_t begin = range.take(bytes);
    if (begin == 0) return nullptr;
    buffers_.emplace(begin, Buffer{handle, bytes, device, &range});
    return reinterpret_cast<void*>(begin);
  }

  [[noreturn]] static void refuse(const void* address, std::size_t bytes, const char* problem) {
    char text[96];
    std::snprintf(text, sizeof text, "%p, of which %zu bytes are used, ", address, bytes);
    throw std::out_of_range(text + std::string(problem));
  }

  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Buffer> buffers_;
  std::map<int, std::list<AddressRange>> ranges_;
};

inline MappedBuffers& mapped_buffers() {
  // Memory may be freed after static destructors.
  static auto* const all = new MappedBuffers;
  return *all;
}

/// Gives a buffer of `bytes` bytes, at least one, addresses that no other memory of the process
/// has, aligned to 4096. Returns the first one; null if the process has no addresses left.
inline void* map_buffer(BufferHandle handle, std::size_t bytes, int device) {
  return mapped_buffers().map(handle, bytes, device);
}

/// Takes the addresses back that `map_buffer` returned, and returns the handle. Throws
/// std::out_of_range for another address.
inline BufferHandle unmap_buffer(void* address) {
  return mapped_buffers().unmap(address);
}

/// The buffer to which an address belongs, and the offset in it: that of a tensor's `data_ptr()`,
/// or of any other byte of it. Takes the time of a search in a sorted map. Throws std::out_of_range
/// if the `bytes` bytes from that address on are not all in one mapped buffer: before its
/// beginning, over its end, freed, or memory of the host.
inline Location locate(const void* address, std::size_t bytes = 1) {
  return mapped_buffers().locate(address, bytes);
}

}  // namespace backendkit
