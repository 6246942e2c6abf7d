// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/process.h"

namespace backendgen {

/// The command that runs a Python module of templates/tools/backendkit_tools, with all modules of
/// that package on its command line: nothing is written to disk, and nothing of it need be
/// installed.
Command tool_command(const std::string& python, const std::string& module,
                     const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder);

/// Shows what a tool printed (screen.py): its status lines, then its error. An error of its own
/// making, such as a traceback, is shown as `unexpected` with what the tool wrote. Returns kDone or
/// kNo.
Status show_tool(const Outcome& outcome, const std::string& unexpected, const Context& context);

}  // namespace backendgen
