// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <ATen/core/operator_name.h>
#include <c10/util/Exception.h>

#include <backendkit/profiler/operator_times.h>

namespace backendkit {

/// The cost of falling back to the CPU for one operator since the last reset.
struct FallbackCount {
  TimeCount time;                        ///< with the bytes copied between device and host
  std::atomic<std::int64_t> copying{0};  ///< those of the nanoseconds in which it copied
  std::atomic<bool> warned{false};
};

/// The counts of all operators. Thread-safe; counts live until the process ends.
class FallbackCounts {
 public:
  static FallbackCount& of(const c10::OperatorName& op) {
    const std::lock_guard<std::mutex> lock(instance().mutex_);
    std::unique_ptr<FallbackCount>& count = instance().counts_[op];
    if (count == nullptr) count = std::make_unique<FallbackCount>();
    return *count;
  }

  /// Names, calls, nanoseconds, bytes copied and nanoseconds of copying of the operators that fell
  /// back, in no particular order.
  using Numbers = std::vector<std::int64_t>;
  using Table = std::tuple<std::vector<std::string>, Numbers, Numbers, Numbers, Numbers>;

  static Table table() {
    Table table;
    auto& [names, calls, nanoseconds, bytes, copying] = table;
    const std::lock_guard<std::mutex> lock(instance().mutex_);
    for (const auto& [op, count] : instance().counts_) {
      if (count->time.calls == 0) continue;
      names.push_back(c10::toString(op));
      calls.push_back(count->time.calls);
      nanoseconds.push_back(count->time.nanoseconds);
      bytes.push_back(count->time.bytes);
      copying.push_back(count->copying);
    }
    return table;
  }

  static void reset() {
    const std::lock_guard<std::mutex> lock(instance().mutex_);
    for (const auto& [op, count] : instance().counts_) {
      count->time.reset();
      count->copying = 0;
    }
  }

 private:
  static FallbackCounts& instance() {
    static auto* const counts = new FallbackCounts;  // threads may outlive static destructors
    return *counts;
  }

  std::mutex mutex_;
  std::unordered_map<c10::OperatorName, std::unique_ptr<FallbackCount>> counts_;
};

/// What the environment variable BACKENDKIT_FALLBACK makes the CPU fallback do.
enum class FallbackMode { kQuiet, kWarn, kError };

/// Reads BACKENDKIT_FALLBACK once per process. Warns about an unknown value.
inline FallbackMode fallback_mode() {
  static const FallbackMode mode = [] {
    const char* text = std::getenv("BACKENDKIT_FALLBACK");
    const std::string_view value = text == nullptr ? "" : text;
    if (value == "warn") return FallbackMode::kWarn;
    if (value == "error") return FallbackMode::kError;
    if (!value.empty()) {
      TORCH_WARN("BACKENDKIT_FALLBACK has the unknown value `", value,
                 "`, which is ignored: set it to `warn` or `error`");
    }
    return FallbackMode::kQuiet;
  }();
  return mode;
}

}  // namespace backendkit
