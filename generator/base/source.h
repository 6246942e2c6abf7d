// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

/// A stretch of one line of a Source, for a caret to point at. Lines and columns count from 1;
/// columns and length count bytes. Line 0 means "no place in particular".
struct Span {
  std::size_t line = 0;
  std::size_t column = 0;
  std::size_t length = 0;

  bool known() const { return line != 0; }
  auto operator<=>(const Span&) const = default;
};

/// A value that a file has, and where it stands, for later diagnostics. A default has no place.
struct Text {
  std::string value;
  Span span;
};

/// A text together with the path it is shown under in messages. Immutable. A byte order mark at the
/// start of the text is left out.
class Source {
 public:
  Source(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }

  /// The line without its end ("\n" or "\r\n"); empty when there is no such line.
  std::string_view line(std::size_t number) const;

  /// Where in `text` a place is; the end of the text when there is no such line.
  std::size_t offset(std::size_t line, std::size_t column) const;

  /// The stretch of `text` from `begin` to `end`, cut at the end of its first line; at least one
  /// byte long, so that there is something to point at.
  Span span(std::size_t begin, std::size_t end) const;

 private:
  std::string path_;
  std::string text_;
  std::vector<std::size_t> starts_;
};

}  // namespace backendgen
