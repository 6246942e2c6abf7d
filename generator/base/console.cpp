// SPDX-License-Identifier: Apache-2.0
#include "base/console.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"

namespace backendgen {

Console::Console(std::ostream& out, std::ostream& err, Colour colour)
    : out_(out), err_(err), colour_(colour) {}

void Console::data(std::string_view text) {
  if (text.empty() || !failure_.empty()) return;
  errno = 0;  // a stream that fails need not set it
  out_ << text << std::flush;
  if (!out_) failure_ = errno != 0 ? std::strerror(errno) : "Input/output error";
}

void Console::status(std::string_view verb, std::string_view text) {
  // What is missing on stdout must not be reported as done.
  if (!failure_.empty()) return;
  std::string drawn = fmt::format("{:>12}", verb);
  if (colour_ == Colour::kAlways) drawn = fmt::format("\x1b[1;32m{}\x1b[0m", drawn);
  err_ << drawn << ' ' << printable(text) << '\n' << std::flush;
}

void Console::verdict(Verdict verdict, std::string_view word, std::string_view text) {
  std::string drawn = fmt::format("{:<4}", word);
  if (colour_ == Colour::kAlways) {
    const int colour = verdict == Verdict::kGood ? 32 : verdict == Verdict::kDoubtful ? 33 : 31;
    drawn = fmt::format("\x1b[1;{}m{}\x1b[0m", colour, drawn);
  }
  err_ << drawn << "  " << printable(text) << '\n' << std::flush;
}

void Console::line(std::string_view text) {
  err_ << printable_lines(text) << '\n' << std::flush;
}

void Console::report(const Diagnostic& diagnostic, const Source* source) {
  err_ << render(diagnostic, source, colour_) << std::flush;
}

void Console::error(std::string message, std::string help, std::string note) {
  Diagnostic problem;
  problem.message = std::move(message);
  if (!help.empty()) problem.help.push_back(std::move(help));
  if (!note.empty()) problem.notes.push_back(std::move(note));
  report(problem);
}

void Console::report(const Diagnostics& problems, const Source& source) {
  const std::vector<Diagnostic> sorted = problems.sorted();
  const std::size_t shown = std::min(sorted.size(), kShownProblems);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) err_ << '\n';
    report(sorted[i], &source);
  }
  if (problems.error_count() > 1) {
    Diagnostic summary;
    summary.message = fmt::format("{} has {} problems", source.path(), problems.error_count());
    if (shown < sorted.size()) {
      summary.notes.push_back(fmt::format("the first {} are shown", shown));
    }
    err_ << '\n';
    report(summary);
  }
}

}  // namespace backendgen
