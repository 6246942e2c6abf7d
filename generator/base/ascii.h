// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace backendgen {

// Kinds of ASCII characters, whatever the locale is.

constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return is_lower(c) || is_upper(c);
}
/// What a name in C++ and Python may contain.
constexpr bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

}  // namespace backendgen
