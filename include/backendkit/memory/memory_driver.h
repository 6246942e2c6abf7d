// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace backendkit {

/// What a CachingAllocator needs from a driver, for one device. `Event` is a value, such as a
/// handle.
template <class Driver>
concept MemoryDriver = requires(Driver driver, void* pointer, std::size_t bytes,
                                std::int64_t stream, typename Driver::Event event) {
  /// Allocates a segment; null if there is not enough memory.
  { driver.allocate(bytes) } -> std::same_as<void*>;
  /// Frees a segment that no work uses any more.
  { driver.deallocate(pointer, bytes) } -> std::same_as<void>;
  /// Waits for all work on the device.
  { driver.synchronize() } -> std::same_as<void>;
  /// Records an event after all work queued on the stream so far; may throw. Returns nothing while
  /// the stream cannot have an event, because it records a graph.
  { driver.record(stream) } -> std::convertible_to<std::optional<typename Driver::Event>>;
  { driver.done(event) } -> std::same_as<bool>;
  { driver.destroy(event) } -> std::same_as<void>;
};

}  // namespace backendkit
