// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace backendgen {

/// Why a statement must not be given to the TOML parser: toml++ 3.3 runs into undefined behaviour
/// or out of stack.
enum class Flaw {
  kNone,
  kControl,    // a control character, which TOML allows nowhere
  kCharacter,  // a character beyond ASCII outside quotes
  kDots,       // more dots than any table has levels
  kHead,       // a [table] whose name does not start as a name
  kBrace,      // "}" in a list
  kTime,       // a date and `T` without an hour after it
  kLongKey,    // a key or a table's name in three quotes
  kBackslash,  // a backslash, blanks or line ends, and a character beyond ASCII, in quotes
};

/// One `key = value` or `[table]` of a TOML text, with its continuation lines; or any other line
/// that is not empty. All places are offsets in the text; `npos` where there is none.
struct Statement {
  static constexpr std::size_t npos = std::string_view::npos;

  std::size_t begin = 0;       // its first byte that is not a blank
  std::size_t end = 0;         // past its last byte, without the line's end
  bool header = false;         // starts with "["
  std::size_t equals = npos;   // the "=" between key and value
  std::size_t quote = npos;    // the opening quote of a text that is never closed
  std::size_t bracket = npos;  // the outermost "[" or "{" of a value that is never closed
  Flaw flaw = Flaw::kNone;
  std::size_t flaw_at = npos;
};

/// Splits a TOML text, without judging it, so that an error in one statement can be reported and
/// the rest still be read. Comments are left out unless they have a flaw. Never fails; the end of a
/// broken statement is a guess.
std::vector<Statement> split_statements(std::string_view text);

}  // namespace backendgen
