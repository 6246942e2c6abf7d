// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace backendkit {

/// What a CachingAllocator needs of a driver, for one device. `Event` is a value, such as a handle.
template <class Driver>
concept MemoryDriver = requires(Driver driver, void* pointer, std::size_t bytes,
                                std::int64_t stream, typename Driver::Event event) {
  /// A segment of memory; null when there is not enough.
  { driver.allocate(bytes) } -> std::same_as<void*>;
  /// Gives a segment back, of which no work is left.
  { driver.deallocate(pointer, bytes) } -> std::same_as<void>;
  /// Waits for all work of the device.
  { driver.synchronize() } -> std::same_as<void>;
  /// An event behind the work that a stream has now; may throw.
  { driver.record(stream) } -> std::same_as<typename Driver::Event>;
  { driver.done(event) } -> std::same_as<bool>;
  { driver.destroy(event) } -> std::same_as<void>;
};

}  // namespace backendkit
