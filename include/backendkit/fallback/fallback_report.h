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

namespace backendkit {

/// The cost of falling back to the CPU for one operator since the last reset.
struct FallbackCount {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> nanoseconds{0};
  std::atomic<std::int64_t> bytes{0};  ///< copied between the device and the host
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

  /// Names, calls, nanoseconds and bytes copied of the operators that fell back, in no particular
  /// order.
  using Table = std::tuple<std::vector<std::string>, std::vector<std::int64_t>,
                           std::vector<std::int64_t>, std::vector<std::int64_t>>;

  static Table table() {
    Table table;
    auto& [names, calls, nanoseconds, bytes] = table;
    const std::lock_guard<std::mutex> lock(instance().mutex_);
    for (const auto& [op, count] : instance().counts_) {
      if (count->calls == 0) continue;
      names.push_back(c10::toString(op));
      calls.push_back(count->calls);
      nanoseconds.push_back(count->nanoseconds);
      bytes.push_back(count->bytes);
    }
    return table;
  }

  static void reset() {
    const std::lock_guard<std::mutex> lock(instance().mutex_);
    for (const auto& [op, count] : instance().counts_) {
      count->calls = 0;
      count->nanoseconds = 0;
      count->bytes = 0;
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
