// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/context.h"

namespace backendgen {

struct MergeOptions {
  std::vector<std::string> wheels;
  std::string out;     // where the wheel goes; empty: dist
  std::string python;  // the interpreter that reads and writes them; empty: the default one
};

/// `backendgen merge`: joins wheels of one backend for several releases of PyTorch. Exit status.
int run_merge(const MergeOptions& options, Context& context);

}  // namespace backendgen
