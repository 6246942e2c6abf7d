// SPDX-License-Identifier: Apache-2.0
#include "torch/releases.h"

namespace backendgen {

const std::vector<TorchRelease>& tested_releases() {
  // A row is a line; tests/pytorch/follow/bump.py adds one.
  // clang-format off
  static const std::vector<TorchRelease> kReleases = {
      {{2, 5, 1}, 10, 12},
      {{2, 6, 0}, 10, 13},
      {{2, 7, 1}, 10, 13},
      {{2, 8, 0}, 10, 13},
      {{2, 9, 1}, 10, 14},
      {{2, 10, 0}, 10, 14},
      {{2, 11, 0}, 10, 14},
      {{2, 12, 1}, 10, 14},
      {{2, 13, 0}, 10, 14},
      {{2, 14, 1}, 10, 14},
      {{2, 15, 0}, 11, 14},
  };
  // clang-format on
  return kReleases;
}

TorchVersion newest_tested() {
  return tested_releases().back().version;
}

TorchRelease release_of(const TorchVersion& version) {
  for (TorchRelease release : tested_releases()) {
    if (release.version.major != version.major || release.version.minor != version.minor) continue;
    release.version = version;
    return release;
  }
  TorchRelease newest = tested_releases().back();
  newest.version = version;
  return newest;
}

std::optional<TorchVersion> missing_between(const TorchVersion& before, const TorchVersion& next) {
  const auto minor_of = [](const TorchVersion& version) {
    return TorchVersion{version.major, version.minor, 0};
  };
  const TorchVersion first = minor_of(before);
  const TorchVersion last = minor_of(next);
  for (const TorchRelease& release : tested_releases()) {
    const TorchVersion between = minor_of(release.version);
    if (first < between && between < last) return between;
  }
  const bool same_major = first.major == last.major;
  const TorchVersion expected = {same_major ? first.major : first.major + 1,
                                 same_major ? first.minor + 1 : 0, 0};
  return expected < last ? std::optional(expected) : std::nullopt;
}

std::string tested_minors() {
  std::string text;
  for (const TorchRelease& release : tested_releases()) {
    text += (text.empty() ? "" : ",") + release.version.minor_text();
  }
  return text;
}

std::vector<TorchRelease> admitted_releases(std::string_view requirement) {
  std::vector<TorchRelease> admitted;
  for (TorchRelease release : tested_releases()) {
    int& patch = release.version.patch;
    while (patch >= 0 && !admits(requirement, release.version)) --patch;
    if (patch >= 0) admitted.push_back(release);
  }
  return admitted;
}

}  // namespace backendgen
