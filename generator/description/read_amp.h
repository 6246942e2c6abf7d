// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/value_reader.h"

namespace backendgen {

/// Reads [amp]; `amp` is null when the description has none. Whether PyTorch has the operators that
/// are listed is not asked here; see autocast.h.
void read_amp(const Value* amp, ValueReader& reader, Diagnostics& problems, Description& result);

}  // namespace backendgen
