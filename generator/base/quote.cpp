// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

namespace backendgen {

std::string quote(std::string_view text) {
  std::string literal = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') literal += '\\';
    literal += letter;
  }
  return literal + '"';
}

}  // namespace backendgen
