// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "console.h"
#include "disk.h"
#include "process.h"

namespace backendgen {

/// Exit statuses of the program.
enum Status : int { kDone = 0, kNo = 1, kUsage = 2, kInternal = 3 };

/// The world as the commands see it; `main` builds it from real parts, tests from fakes.
struct Context {
  Disk& disk;
  Process& process;
  Console& console;
  std::filesystem::path folder;  // where relative paths start: the working folder, or -C
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::vector<std::shared_ptr<void>> kept = {};  // see `keep`

  /// Keeps a value as long as the context, which `main` never destroys: at the end of the process,
  /// to free what has thousands of parts is time lost.
  template <class Value>
  const Value& keep(Value value) {
    const auto one = std::make_shared<Value>(std::move(value));
    kept.push_back(one);
    return *one;
  }
};

}  // namespace backendgen
