// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace backendgen {

/// The text as a literal in double quotes that Python, TOML, JSON and C++ read alike. For texts
/// without control characters (`validate.h` refuses them in a description).
std::string quote(std::string_view text);

}  // namespace backendgen
