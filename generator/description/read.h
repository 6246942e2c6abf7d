// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/diagnostic.h"
#include "description/description.h"

namespace backendgen {

/// Reads a backend.toml: syntax, types, unknown keys and (through `validate.h`) the rules of every
/// value. Adds every problem to `problems`; empty when one of them is an error. Operators are
/// checked against the installed PyTorch elsewhere (`catalog.h`).
std::optional<Description> read_description(const Source& source, Diagnostics& problems);

/// The same, for judging the rest of a description that has errors: gives what could be read. Its
/// kernels are those that are well formed; other fields may be empty.
Description read_partial_description(const Source& source, Diagnostics& problems);

}  // namespace backendgen
