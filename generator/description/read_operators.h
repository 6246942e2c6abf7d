// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/value_reader.h"

namespace backendgen {

/// Reads the table [operators], which may be missing, into the fields of `result` that it fills.
void read_operators(const Value* operators, ValueReader& reader, Diagnostics& problems,
                    Description& result);

}  // namespace backendgen
