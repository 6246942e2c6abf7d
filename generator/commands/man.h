// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/command_line.h"
#include "base/context.h"

namespace backendgen {

/// `backendgen man`: prints the manual page of all commands, for man(1). Exit status.
int run_man(const std::vector<CommandSpec>& commands, Context& context);

}  // namespace backendgen
