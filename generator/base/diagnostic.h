// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

namespace backendgen {

enum class Severity { kError, kWarning };

/// A second place that a diagnostic shows, underlined with dashes ("first listed here").
struct Label {
  Span span;
  std::string text;
};

/// One problem as data. `render.h` draws it; nothing else knows carets or colour.
/// Messages are lower case, without a full stop, with backticks round what the user typed.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string message;
  Span span;
  std::optional<Label> earlier;
  std::vector<std::string> help;   // something to type
  std::vector<std::string> notes;  // a fact
};

/// What the user typed, for a message: in backticks, on one line, printable, and cut when it is
/// long.
std::string in_ticks(std::string_view text);

/// Collects problems, so that one run reports all of them. Functions take `Diagnostics&`, add what
/// they find and return an empty optional when they have no answer.
class Diagnostics {
 public:
  /// Adds a problem and returns it, for help and notes to be added; valid until the next call.
  Diagnostic& error(std::string message, Span span = {});
  Diagnostic& warning(std::string message, Span span = {});

  /// Adds all problems of `others`.
  void add(const Diagnostics& others);

  bool has_errors() const { return errors_ != 0; }
  std::size_t error_count() const { return errors_; }

  /// All problems, in file order; those without a place come last, in the order they were added.
  std::vector<Diagnostic> sorted() const;

 private:
  Diagnostic& add(Severity severity, std::string message, Span span);

  std::vector<Diagnostic> all_;
  std::size_t errors_ = 0;
};

}  // namespace backendgen
