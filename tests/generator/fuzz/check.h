// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/render.h"
#include "base/source.h"
#include "base/utf8.h"

/// What libFuzzer calls with every text that it makes up, and `replay.cpp` with every file of the
/// corpus. Returns 0; throws `Broken` when the generator breaks a promise.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

/// A promise of the generator that does not hold. libFuzzer takes it for a crash.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, std::string_view promise, std::string_view about = {}) {
  if (!holds) throw Broken(std::string(promise) + ": " + backendgen::printable(about));
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Every problem can be drawn, with and without colour, as printable UTF-8, and points into the
/// source.
inline void require_shown(const backendgen::Diagnostics& problems,
                          const backendgen::Source& source) {
  using namespace backendgen;
  const std::string& text = source.text();
  const auto lines = static_cast<std::size_t>(1 + std::count(text.begin(), text.end(), '\n'));
  for (const Diagnostic& problem : problems.sorted()) {
    const std::string shown = render(problem, &source, Colour::kNever);
    require(find_invalid_utf8(shown) == shown.npos, "messages are UTF-8", shown);
    require(printable_lines(shown) == shown, "messages are printable", shown);
    require(render(problem, &source, Colour::kAlways).size() > shown.size(), "messages have colour",
            shown);
    const Span& span = problem.span;
    if (!span.known()) continue;
    require(span.line <= lines, "problems stand on a line of the source", shown);
    require(span.column >= 1 && span.column <= source.line(span.line).size() + 2,
            "problems stand on a column of the source", shown);
    require(span.length <= source.line(span.line).size() + 1, "problems end on their line", shown);
  }
}

}  // namespace fuzz
