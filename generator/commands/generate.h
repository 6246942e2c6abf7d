// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct GenerateOptions {
  std::string description;  // a file or folder; empty: backend.toml here or above
  std::string out;          // the folder to write, relative to the context's
  std::string torch;        // PyTorch's folder; empty: the default Python's
  bool list = false;
  bool check = false;
  bool force = false;
};

/// `backendgen generate`: writes the glue, or lists it, or compares it with the disk. Exit status.
int run_generate(const GenerateOptions& options, Context& context);

}  // namespace backendgen
