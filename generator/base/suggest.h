// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

/// The known word nearest to `word`: an edit distance (transpositions count one) of at most 3 and
/// at most a third of the word's length, the first of equally near ones; empty when none is near.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace backendgen
