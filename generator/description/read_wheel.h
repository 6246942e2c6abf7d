// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/value_reader.h"

namespace backendgen {

/// Reads the table [wheel], which may be null, and [wheel.runtime]; after [backend]. Its unknown
/// keys are reported by the caller.
void read_wheel(const Value* wheel, ValueReader& reader, Diagnostics& problems,
                Description& result);

}  // namespace backendgen
