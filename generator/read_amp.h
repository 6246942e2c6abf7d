// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "description.h"
#include "diagnostic.h"
#include "document.h"
#include "value_reader.h"

namespace backendgen {

/// Reads [amp]; `amp` is null when the description has none. Whether PyTorch has the operators that
/// are listed is not asked here; see autocast.h.
void read_amp(const Value* amp, ValueReader& reader, Diagnostics& problems, Description& result);

}  // namespace backendgen
