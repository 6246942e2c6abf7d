// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct CheckOptions {
  std::string description;  // a file or folder; empty: backend.toml here or above
  std::string torch;        // PyTorch's folder; empty: the default Python's
  std::string format;       // "text" (default) or "json"
};

/// `backendgen check`: judges a description, and its kernels by the operators of the PyTorch found;
/// reports every problem at once and writes nothing. With the format "json" a good description goes
/// to stdout, for build systems. A PyTorch is looked for when there are kernels or one is named.
/// Exit status.
int run_check(const CheckOptions& options, Context& context);

}  // namespace backendgen
