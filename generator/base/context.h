// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/console.h"
#include "base/disk.h"
#include "base/process.h"

namespace backendgen {

/// Exit statuses of the program.
enum Status : int { kDone = 0, kNo = 1, kUsage = 2, kInternal = 3 };

/// The world as the commands see it; `main` builds it from real parts, tests from fakes.
struct Context {
  /// Reports an error without a place; an empty help or note is none. Returns kNo.
  Status refuse(std::string message, std::string help = {}, std::string note = {}) const {
    console.error(std::move(message), std::move(help), std::move(note));
    return kNo;
  }

  Disk& disk;
  Process& process;
  Console& console;
  std::filesystem::path folder;  // where relative paths start: the working folder, or -C
  std::function<std::optional<std::string>(const std::string&)> environment;
};

}  // namespace backendgen
