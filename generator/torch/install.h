// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "base/process.h"

namespace backendgen {

/// A release of PyTorch: 2.13.0 of "2.13.0+cpu" or "2.14.0a0+git1234".
struct TorchVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const TorchVersion&) const = default;
  std::string text() const;        // "2.13.0"
  std::string minor_text() const;  // "2.13"
  static std::optional<TorchVersion> parse(std::string_view text);
};

/// A PyTorch found on disk. Nothing of it is ever imported or run.
struct TorchInstall {
  std::filesystem::path folder;     // .../site-packages/torch
  std::filesystem::path operators;  // .../torchgen/packaged/ATen/native/native_functions.yaml
  TorchVersion version;
};

/// Reads what PyTorch lies in `folder` (the folder named `torch` of an installation). Errors: no
/// such folder, no version.py, older than `oldest()`, no operator list beside it.
std::optional<TorchInstall> open_torch(const std::filesystem::path& folder, const Disk& disk,
                                       Diagnostics& problems);

/// Asks `python` (an executable, or a name to look up in PATH) where its PyTorch is, without
/// importing it, and opens that.
std::optional<TorchInstall> find_torch(const std::string& python, const Disk& disk,
                                       Process& process, Diagnostics& problems);

/// The oldest minor release that BackendKit works for, and the newest release that it was tested
/// with, which is the last one of `tested_releases()`.
TorchVersion oldest();
TorchVersion newest_tested();

/// Warns of a release that is newer than that, which the glue may not compile with.
void warn_if_newer(const TorchInstall& torch, Diagnostics& problems);

/// Whether a requirement of the description, such as ">=2.5,<2.15", admits a release. The
/// requirement has been checked by `judge_torch_requirement`.
bool admits(std::string_view requirement, const TorchVersion& version);

}  // namespace backendgen
