// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace backendgen {

std::string in_ticks(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size() && count < kMost; ++count) {
    end += character_at(text, end).bytes;
  }
  return "`" + printable(text.substr(0, end)) + (end < text.size() ? "..." : "") + "`";
}

Diagnostic& Diagnostics::error(std::string message, Span span) {
  ++errors_;
  return add(Severity::kError, std::move(message), span);
}

Diagnostic& Diagnostics::warning(std::string message, Span span) {
  return add(Severity::kWarning, std::move(message), span);
}

Diagnostic& Diagnostics::add(Severity severity, std::string message, Span span) {
  Diagnostic& added = all_.emplace_back();
  added.severity = severity;
  added.message = std::move(message);
  added.span = span;
  return added;
}

void Diagnostics::add(const Diagnostics& others) {
  all_.insert(all_.end(), others.all_.begin(), others.all_.end());
  errors_ += others.errors_;
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> result = all_;
  std::stable_sort(result.begin(), result.end(), [](const Diagnostic& a, const Diagnostic& b) {
    if (a.span.known() != b.span.known()) return a.span.known();
    return std::pair(a.span.line, a.span.column) < std::pair(b.span.line, b.span.column);
  });
  return result;
}

}  // namespace backendgen
