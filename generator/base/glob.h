// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace backendgen {

/// Whether a text has a wildcard: `*` stands for any letters or none, `?` for one letter.
bool has_wildcard(std::string_view pattern);

/// Whether the whole of `text` is as the pattern says.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace backendgen
