// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/render.h"

namespace backendgen {

/// How many problems of one file are drawn.
inline constexpr std::size_t kShownProblems = 100;

/// How a check ended.
enum class Verdict { kGood, kDoubtful, kBad };

/// The only place that prints: data to stdout, everything for people to stderr. ASCII only.
class Console {
 public:
  Console(std::ostream& out, std::ostream& err, Colour colour);

  /// Draws from now on with or without colour.
  void use(Colour colour) { colour_ = colour; }

  /// Data for another program or a file: exactly `text`, to stdout. Whether it got there, `failure`
  /// says.
  void data(std::string_view text);

  /// Why data could not be written to stdout, such as "No space left on device"; empty while all of
  /// it was.
  const std::string& failure() const { return failure_; }

  /// "     Created kite/, a backend for …": a verb right-aligned in 12 columns, to stderr. Nothing
  /// once data was lost: the command has not done what this says.
  void status(std::string_view verb, std::string_view text);

  /// "fail  python      ...": a verdict in colour and a text on one line, to stderr.
  void verdict(Verdict verdict, std::string_view word, std::string_view text);

  /// A line for people to stderr, or several; control characters become escapes.
  void line(std::string_view text);

  void report(const Diagnostic& diagnostic, const Source* source = nullptr);

  /// An error without a place. An empty help or note is none.
  void error(std::string message, std::string help = {}, std::string note = {});

  /// Every problem, in file order, with an empty line between two; then, for more than one error,
  /// "error: backend.toml has 6 problems". Of more than a hundred the first hundred are shown.
  void report(const Diagnostics& problems, const Source& source);

 private:
  std::ostream& out_;
  std::ostream& err_;
  Colour colour_;
  std::string failure_;
};

}  // namespace backendgen
