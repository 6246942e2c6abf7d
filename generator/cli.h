// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/context.h"

namespace backendgen {

/// Runs the command that `words` (without the program's name) ask for and returns its exit status.
int run(const std::vector<std::string>& words, Context& context);

}  // namespace backendgen
