// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <cstddef>

namespace backendgen {

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of("*?") != std::string_view::npos;
}

bool matches(std::string_view pattern, std::string_view text) {
  // When a letter does not fit, the last `*` takes one letter more; earlier ones need not change.
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;  // where the text goes on after what the last `*` took
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace backendgen
