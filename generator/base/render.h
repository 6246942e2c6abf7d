// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/diagnostic.h"

namespace backendgen {

enum class Colour { kNever, kAlways };

/// Draws one diagnostic "error: …", " --> file:line:column", the source line with carets, `help:`
/// and `note:` lines; ends with a newline. `source` may be null for a diagnostic without a place.
///
/// Carets stand under the columns a terminal shows: a tab is four spaces, wide characters take two
/// columns, and what is not printable becomes an escape, so no raw control character of the source
/// or of a message gets through. Of a long line the part around the span is shown.
std::string render(const Diagnostic& diagnostic, const Source* source, Colour colour);

}  // namespace backendgen
