// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/context.h"
#include "doctor/report.h"

namespace backendgen {

/// Judges the programs that build a backend: compiler, CMake, ninja. A build takes them from the
/// folder of `python`, then from PATH. What is missing is bad when something is being built here
/// (`needed`), and otherwise doubtful: a backend that is installed works without.
std::vector<CheckRow> check_programs(const std::string& python, bool needed, Context& context);

}  // namespace backendgen
