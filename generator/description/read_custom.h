// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/value_reader.h"

namespace backendgen {

/// Reads [[operators.custom]] of the table `operators`, which may be null. The schemas are parsed;
/// their namespace must be the device's name, which `result` has by then.
void read_custom(const Value* operators, ValueReader& reader, Diagnostics& problems,
                 Description& result);

}  // namespace backendgen
