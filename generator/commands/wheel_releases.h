// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "description/description.h"
#include "torch/install.h"

namespace backendgen {

/// A release of PyTorch that a wheel is built for.
struct WheelRelease {
  TorchVersion version;     // of one that pip is still to install, the minor release counts
  std::string python;       // has that PyTorch; empty for one that pip is still to install
  std::string requirement;  // what pip is to install then: "torch==2.11.*,>=2.5"
};

/// What `--torch 2.11,2.12` means.
struct WheelReleasesOptions {
  std::string names;      // releases and folders, with commas between
  std::string python;     // is asked first
  bool with_pip = false;  // what is not found, pip installs into an environment for the build
  bool holes = false;     // releases may be left out, because the wheels are not joined
};

/// Finds each release, oldest first. All that is wrong is reported: a release that was not found,
/// that the description does not admit, that is there twice, or that is left out.
std::optional<std::vector<WheelRelease>> find_releases(const WheelReleasesOptions& options,
                                                       const Description& description,
                                                       Context& context);

/// An environment with a PyTorch that pip installed, for one build. It sees what else the Python
/// `base` has, and is removed with this object.
class TemporaryEnvironment {
 public:
  TemporaryEnvironment(std::string base, std::filesystem::path folder, Context& context);
  ~TemporaryEnvironment();
  TemporaryEnvironment(const TemporaryEnvironment&) = delete;
  TemporaryEnvironment& operator=(const TemporaryEnvironment&) = delete;

  /// Makes it, in place of one that was left by a run that was killed; false, reported, when that
  /// fails.
  bool make(const WheelRelease& release, const std::filesystem::path& log);
  std::string python() const { return (folder_ / "bin" / "python").string(); }

 private:
  std::string base_;
  std::filesystem::path folder_;
  Context& context_;
};

}  // namespace backendgen
