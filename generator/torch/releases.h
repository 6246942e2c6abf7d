// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torch/install.h"

namespace backendgen {

/// A release of PyTorch that BackendKit is tested with, and the Pythons, such as 10 for 3.10, that
/// a project is tested with: those that have a wheel of it for x86_64 and aarch64, from 3.10 on.
struct TorchRelease {
  TorchVersion version;  // the last patch release of its minor one
  int oldest_python = 10;
  int newest_python = 12;
};

/// The rows of docs/compatibility.md, oldest first. This is the only list of releases in the
/// generator.
const std::vector<TorchRelease>& tested_releases();

/// What is known of a release: its own row, that of its minor release, or the newest one.
TorchRelease release_of(const TorchVersion& version);

/// The first release that is left out when `next` follows `before`: the next tested one, else the
/// next minor one. After a tested release may come the next major one: of a release in between that
/// is not tested nothing is known.
std::optional<TorchVersion> missing_between(const TorchVersion& before, const TorchVersion& next);

/// The minor releases, with commas between, as tools in Python take them.
std::string tested_minors();

/// The newest patch release of each tested minor one that a requirement of the description admits.
std::vector<TorchRelease> admitted_releases(std::string_view requirement);

}  // namespace backendgen
