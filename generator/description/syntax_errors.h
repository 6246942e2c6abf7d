// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "base/diagnostic.h"
#include "base/source.h"
#include "description/statements.h"

namespace backendgen {

/// Reports the flaw of a statement that has one.
void explain_flaw(const Source& source, const Statement& statement, Diagnostics& problems);

/// Reports a syntax error in our words: `reason` is what the TOML parser said, only looked at for
/// what kind of error it is, and `at` the offset where it stopped.
void explain_syntax(const Source& source, const Statement& statement, std::string_view reason,
                    std::size_t at, Diagnostics& problems);

}  // namespace backendgen
