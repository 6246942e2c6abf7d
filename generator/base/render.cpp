// SPDX-License-Identifier: Apache-2.0
#include "base/render.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"

namespace backendgen {
namespace {

constexpr std::size_t kScreen = 100;  // columns of a source line that are shown
constexpr std::size_t kBefore = 20;   // of these, before the span, when the line must be cut
constexpr std::string_view kDots = "...";

constexpr const char* kRed = "1;31";
constexpr const char* kYellow = "1;33";
constexpr const char* kBlue = "1;34";
constexpr const char* kCyan = "1;36";
constexpr const char* kBold = "1";

class Painter {
 public:
  explicit Painter(Colour colour) : colour_(colour) {}
  std::string operator()(const char* code, std::string_view text) const {
    if (colour_ == Colour::kNever || text.empty()) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

 private:
  Colour colour_;
};

/// A source line as a terminal shows it, and the columns of a span in it.
struct Window {
  std::string text;
  std::size_t mark = 0;    // where carets start
  std::size_t length = 0;  // how many
};

struct Cell {
  std::string text;
  std::size_t begin = 0;  // the column it starts in
  std::size_t end = 0;
};

Cell cell_of(std::string_view line, const Character& character, std::size_t at,
             std::size_t column) {
  if (line[at] == '\t') return {"    ", column, column + 4};
  const std::string_view bytes = line.substr(at, character.bytes);
  if (character.valid && is_printable(character.code)) {
    return {std::string(bytes), column, column + width(character.code)};
  }
  std::string escape = printable(bytes);
  const std::size_t end = column + escape.size();
  return {std::move(escape), column, end};
}

Window window_of(std::string_view line, const Span& span) {
  // Only the bytes near the span can be on the screen; a line may be a megabyte long.
  constexpr std::size_t kNear = 8 * kScreen;
  const std::size_t from = std::min(span.column - 1, line.size());
  std::size_t first = from > kNear ? from - kNear : 0;
  while (first > 0 && first < line.size() && (line[first] & 0xC0) == 0x80) --first;
  const std::size_t last = std::min(line.size(), from + kNear);
  const std::size_t to = std::min(from + span.length, last);

  std::vector<Cell> cells;
  std::size_t column = 0;
  std::size_t mark = std::string::npos;
  std::size_t mark_end = 0;
  for (std::size_t at = first; at < last;) {
    const Character character = character_at(line, at);
    if (at + character.bytes > from && mark == std::string::npos) mark = column;
    cells.push_back(cell_of(line, character, at, column));
    column = cells.back().end;
    if (at < to) mark_end = column;
    at += character.bytes;
  }
  mark = std::min(mark, column);
  mark_end = std::max(mark_end, mark + 1);

  const bool fits = first == 0 && last == line.size() && column <= kScreen;
  std::size_t left = 0;
  std::size_t right = column;
  if (!fits) {
    if (first > 0 || mark_end + kDots.size() > kScreen) left = mark > kBefore ? mark - kBefore : 0;
    right = std::min(column, left + kScreen - 2 * kDots.size());
  }
  Window window;
  const bool cut_left = first > 0 || left > 0;
  if (cut_left) window.text = kDots;
  std::size_t origin = left;
  bool started = false;
  for (const Cell& cell : cells) {
    if (cell.begin < left || cell.end > right) continue;
    if (!started) origin = cell.begin;
    started = true;
    window.text += cell.text;
  }
  if (right < column || last < line.size()) window.text += kDots;
  const std::size_t shift = cut_left ? kDots.size() : 0;
  window.mark = mark - std::min(origin, mark) + shift;
  window.length = std::max<std::size_t>(std::min(mark_end, std::max(right, mark + 1)) - mark, 1);
  return window;
}

struct Mark {
  Span span;
  char sign;
  std::string text;
};

std::string entries_of(const std::vector<Mark>& marks, const Source& source, const char* hue,
                       const Painter& paint) {
  const std::size_t digits = fmt::format("{}", marks.back().span.line).size();
  const std::string gutter = std::string(digits, ' ') + " |";
  std::string result = paint(kBlue, gutter) + "\n";
  std::size_t shown = 0;
  std::string shown_text;
  for (const Mark& mark : marks) {
    const Window window = window_of(source.line(mark.span.line), mark.span);
    if (mark.span.line != shown || window.text != shown_text) {
      if (shown != 0 && mark.span.line > shown + 1) result += paint(kBlue, kDots) + "\n";
      result += paint(kBlue, fmt::format("{:>{}} |", mark.span.line, digits));
      if (!window.text.empty()) result += " " + window.text;
      result += "\n";
    }
    shown = mark.span.line;
    shown_text = window.text;
    std::string drawn(window.length, mark.sign);
    if (!mark.text.empty()) drawn += " " + printable(mark.text);
    result += paint(kBlue, gutter) + " " + std::string(window.mark, ' ') +
              paint(mark.sign == '^' ? hue : kBlue, drawn) + "\n";
  }
  return result;
}

}  // namespace

std::string render(const Diagnostic& diagnostic, const Source* source, Colour colour) {
  const Painter paint(colour);
  const bool error = diagnostic.severity == Severity::kError;
  const char* hue = error ? kRed : kYellow;
  std::string result = paint(hue, error ? "error" : "warning") +
                       paint(kBold, ": " + printable(diagnostic.message)) + "\n";
  if (source != nullptr && diagnostic.span.known()) {
    std::vector<Mark> marks{{diagnostic.span, '^', ""}};
    if (diagnostic.earlier) {
      marks.push_back({diagnostic.earlier->span, '-', diagnostic.earlier->text});
    }
    std::sort(marks.begin(), marks.end(),
              [](const Mark& a, const Mark& b) { return a.span < b.span; });
    const std::size_t digits = fmt::format("{}", marks.back().span.line).size();
    result += std::string(digits, ' ') + paint(kBlue, "-->") +
              fmt::format(" {}:{}:{}\n", printable(source->path()), diagnostic.span.line,
                          diagnostic.span.column);
    result += entries_of(marks, *source, hue, paint);
  }
  for (const std::string& help : diagnostic.help) {
    result += paint(kCyan, "help") + ": " + printable_lines(help) + "\n";
  }
  for (const std::string& note : diagnostic.notes) {
    result += paint(kCyan, "note") + ": " + printable_lines(note) + "\n";
  }
  return result;
}

}  // namespace backendgen
