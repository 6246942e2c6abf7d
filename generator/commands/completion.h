// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"
#include "base/context.h"

namespace backendgen {

/// `backendgen completion`: prints the completions of all commands for a shell, "bash", "zsh" or
/// "fish". Exit status.
int run_completion(const std::string& shell, const std::vector<CommandSpec>& commands,
                   Context& context);

}  // namespace backendgen
