// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace backendgen {

/// One character of a text: its code point and its length in bytes. A byte that is not UTF-8 is a
/// character of its own, with `valid` false and the byte as its code.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
  bool valid = false;
};

/// The character that starts at `text[at]`; `at` is below the size of the text.
Character character_at(std::string_view text, std::size_t at);

/// Where the first byte that is not UTF-8 is; npos when all is.
std::size_t find_invalid_utf8(std::string_view text);

/// Whether a code point shows something on a line and only that: no control character, no line or
/// paragraph separator, none that turns the direction of writing, none without a width.
bool is_printable(char32_t code);

/// How many columns of a terminal a printable code point takes: 0 for a combining mark, 2 for the
/// wide characters of East Asia and emoji, else 1.
std::size_t width(char32_t code);

/// "U+200B".
std::string code_name(char32_t code);

/// The text with everything that is not printable written as an escape: "\n", "\x1b", "\u200b".
/// Safe for a terminal and always on one line.
std::string printable(std::string_view text);

/// The same line by line: line ends stay.
std::string printable_lines(std::string_view text);

}  // namespace backendgen
