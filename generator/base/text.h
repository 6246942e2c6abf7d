// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

/// The parts of a text between separators, which has one part if it has no separator.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

/// The words of a list such as "CPU, CUDA", without the spaces around them; empty words are none.
std::vector<std::string> split_list(std::string_view list);

/// "`a`, `b` and `c`".
std::string enumerate(const std::vector<std::string>& words);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace backendgen
