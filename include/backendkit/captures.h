// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

namespace backendkit {

/// The streams that record a graph: work queued on them is recorded instead of run. Thread-safe. A
/// graph's memory is its own: the CachingAllocator knows it by the number of the graph's pool
/// together with the stream.
class Captures {
 public:
  /// The allocator's number for the memory of a stream's work in a pool; 0 is no pool.
  static std::int64_t memory_in(std::uint64_t pool, c10::StreamId stream) {
    return static_cast<std::int64_t>(pool << kStreamBits) | stream;
  }

  /// The stream of such a number.
  static c10::StreamId stream_of(std::int64_t memory) {
    return memory & ((std::int64_t{1} << kStreamBits) - 1);
  }

  /// The allocator's number for memory that a stream's work uses now.
  static std::int64_t memory_of(c10::DeviceIndex device, c10::StreamId stream) {
    if (!any()) return stream;
    const std::lock_guard<std::mutex> lock(mutex());
    const Capture* const found = find(device, stream);
    return found == nullptr ? stream : memory_in(found->pool, stream);
  }

  /// Throws if the stream records already.
  static void begin(c10::DeviceIndex device, c10::StreamId stream, std::uint64_t pool) {
    const std::lock_guard<std::mutex> lock(mutex());
    TORCH_CHECK(find(device, stream) == nullptr, "the current stream records another graph");
    all().push_back({device, stream, pool, ""});
    count().fetch_add(1);
  }

  /// Returns why the graph cannot be used; "" if it can.
  static std::string end(c10::DeviceIndex device, c10::StreamId stream) {
    const std::lock_guard<std::mutex> lock(mutex());
    Capture* const found = find(device, stream);
    if (found == nullptr) return "the stream does not record";
    const std::string failure = std::move(found->failure);
    all().erase(all().begin() + (found - all().data()));
    count().fetch_sub(1);
    return failure;
  }

  static bool recording(c10::DeviceIndex device, c10::StreamId stream) {
    if (!any()) return false;
    const std::lock_guard<std::mutex> lock(mutex());
    return find(device, stream) != nullptr;
  }

  /// Whether any stream of a device records.
  static bool recording_on(c10::DeviceIndex device) {
    if (!any()) return false;
    const std::lock_guard<std::mutex> lock(mutex());
    return std::any_of(all().begin(), all().end(),
                       [device](const Capture& one) { return one.device == device; });
  }

  /// Throws if a stream records: `what` cannot be part of a graph. Its capture has failed then.
  template <class Text>
  static void refuse(c10::DeviceIndex device, c10::StreamId stream, const Text& what) {
    if (!any()) return;
    std::string why = "operation not permitted when stream is capturing: a graph cannot have ";
    why += what;
    {
      const std::lock_guard<std::mutex> lock(mutex());
      Capture* const found = find(device, stream);
      if (found == nullptr) return;
      if (found->failure.empty()) found->failure = why;
    }
    TORCH_CHECK(false, why);
  }

 private:
  static constexpr int kStreamBits = 16;

  struct Capture {
    c10::DeviceIndex device;
    c10::StreamId stream;
    std::uint64_t pool;
    std::string failure;  ///< the first one
  };

  static bool any() { return count().load(std::memory_order_relaxed) != 0; }

  static Capture* find(c10::DeviceIndex device, c10::StreamId stream) {
    for (Capture& one : all()) {
      if (one.device == device && one.stream == stream) return &one;
    }
    return nullptr;
  }

  static std::atomic<int>& count() {
    static std::atomic<int> captures{0};
    return captures;
  }

  // Threads may outlive static objects.
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }

  static std::vector<Capture>& all() {
    static auto* const captures = new std::vector<Capture>;
    return *captures;
  }
};

}  // namespace backendkit
