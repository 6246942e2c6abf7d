// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/diagnostic.h"
#include "base/source.h"
#include "torch/schema.h"

namespace backendgen {

/// Parses a schema of native_functions.yaml. `place` is where the text stands, so that errors point
/// into it. A type with an unknown name is no error: its atom is `kOther`.
std::optional<Schema> parse_schema(std::string_view text, Span place, Diagnostics& problems);

}  // namespace backendgen
