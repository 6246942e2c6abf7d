// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace backendkit {

/// Time in nanoseconds, from any moment on.
inline std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// A part of a thread's time, from here to `end` or to the end of the scope. Parts nest: the time
/// of one is without that of the parts within it, so no time counts twice.
class TimedPart {
 public:
  TimedPart() : outer_(innermost_), start_(now_ns()) { innermost_ = this; }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

  ~TimedPart() {
    if (!ended_) end();
  }

  /// The part's own nanoseconds. Call once.
  std::int64_t end() {
    const std::int64_t all = now_ns() - start_;
    ended_ = true;
    innermost_ = outer_;
    if (outer_ != nullptr) outer_->inner_ += all;
    return all - inner_;
  }

 private:
  inline static thread_local TimedPart* innermost_ = nullptr;

  TimedPart* const outer_;
  const std::int64_t start_;
  std::int64_t inner_ = 0;
  bool ended_ = false;
};

/// How often something was done since the last reset, and what it took. Thread-safe.
struct TimeCount {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> nanoseconds{0};
  std::atomic<std::int64_t> bytes{0};

  void add(std::int64_t taken, std::int64_t copied = 0) {
    calls.fetch_add(1, std::memory_order_relaxed);
    nanoseconds.fetch_add(taken, std::memory_order_relaxed);
    bytes.fetch_add(copied, std::memory_order_relaxed);
  }

  void reset() { calls = nanoseconds = bytes = 0; }
};

/// Between which memories a copy goes; Python has names for these numbers.
enum class CopyWay : std::size_t { kToDevice, kToHost, kWithinDevice, kBetweenDevices };

/// The copies that programs and kernels ask for. A fallback's own copies are the fallback's.
class CopyCounts {
 public:
  static TimeCount& of(CopyWay way) { return all()[static_cast<std::size_t>(way)]; }

  /// Calls, nanoseconds and bytes of each way.
  static std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::vector<std::int64_t>>
  table() {
    std::vector<std::int64_t> calls, nanoseconds, bytes;
    for (const TimeCount& one : all()) {
      calls.push_back(one.calls);
      nanoseconds.push_back(one.nanoseconds);
      bytes.push_back(one.bytes);
    }
    return {calls, nanoseconds, bytes};
  }

  static void reset() {
    for (TimeCount& one : all()) one.reset();
  }

 private:
  static constexpr std::size_t kWays = 4;

  static std::array<TimeCount, kWays>& all() {
    static std::array<TimeCount, kWays> counts;
    return counts;
  }
};

/// The times of the backend's kernels, by operator. They are taken only while a block of
/// `timed_operators` runs in some thread, because each kernel is followed by a wait for its work.
/// Thread-safe.
class KernelTimes {
 public:
  /// Whether to take times now. Costs a load where nobody does.
  static bool on() { return blocks_.load(std::memory_order_relaxed) != 0; }

  /// Begins or ends a block; blocks may overlap.
  static void take(bool begin) {
    KernelTimes& self = instance();
    const std::lock_guard<std::mutex> lock(self.mutex_);
    const int before = blocks_.load();
    if (begin) {
      if (before == 0) self.since_ = now_ns();
      blocks_.store(before + 1);
    } else if (before > 0) {
      if (before == 1) self.taken_ += now_ns() - self.since_;
      blocks_.store(before - 1);
    }
  }

  static void add(std::string_view name_space, std::string_view op, std::int64_t nanoseconds) {
    std::string name(name_space);
    name.append("::").append(op);
    KernelTimes& self = instance();
    const std::lock_guard<std::mutex> lock(self.mutex_);
    self.counts_[name].add(nanoseconds);
  }

  /// Names, calls and nanoseconds, in no particular order.
  static std::tuple<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::int64_t>>
  table() {
    std::vector<std::string> names;
    std::vector<std::int64_t> calls, nanoseconds;
    KernelTimes& self = instance();
    const std::lock_guard<std::mutex> lock(self.mutex_);
    for (const auto& [name, count] : self.counts_) {
      names.push_back(name);
      calls.push_back(count.calls);
      nanoseconds.push_back(count.nanoseconds);
    }
    return {names, calls, nanoseconds};
  }

  /// Nanoseconds since the last reset, and those of them that were in a block. Loading the library
  /// counts as a reset.
  static std::tuple<std::int64_t, std::int64_t> span() {
    KernelTimes& self = instance();
    const std::lock_guard<std::mutex> lock(self.mutex_);
    const std::int64_t now = now_ns();
    return {now - self.reset_, self.taken_ + (blocks_.load() > 0 ? now - self.since_ : 0)};
  }

  static void reset() {
    KernelTimes& self = instance();
    const std::lock_guard<std::mutex> lock(self.mutex_);
    self.counts_.clear();
    self.reset_ = self.since_ = now_ns();
    self.taken_ = 0;
  }

 private:
  static KernelTimes& instance() {
    static auto* const times = new KernelTimes;  // threads may outlive static destructors
    return *times;
  }

  inline static std::atomic<int> blocks_{0};

  std::mutex mutex_;
  std::unordered_map<std::string, TimeCount> counts_;
  std::int64_t reset_ = now_ns();
  std::int64_t since_ = 0;  ///< when the first of the blocks that run now began
  std::int64_t taken_ = 0;  ///< in blocks that have ended
};

}  // namespace backendkit
