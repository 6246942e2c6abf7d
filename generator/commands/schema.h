// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/context.h"

namespace backendgen {

/// `backendgen schema`: prints the JSON Schema of backend.toml, for editors. Exit status.
int run_schema(Context& context);

}  // namespace backendgen
