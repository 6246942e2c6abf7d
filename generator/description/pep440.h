// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace backendgen {

/// Whether a requirement such as ">=4.2,<5" admits a version, as PEP 440 says. Both have been
/// checked: by `judge_package_requirement` and `judge_version`.
bool admits_version(std::string_view requirement, std::string_view version);

/// What is required of a package that was at this version when a backend was built with it: the
/// same minor version or a newer one, with the same major one.
std::string requirement_for(std::string_view version);

}  // namespace backendgen
