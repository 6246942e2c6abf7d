// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct CiOptions {
  std::string service;      // "github" or "gitlab"
  std::string description;  // a file or folder; empty: backend.toml here or above
  std::string torch;        // PyTorch releases, separated by commas; empty: all tested ones
  bool nightly = false;
  bool crcr = false;
};

/// `backendgen ci`: prints a CI file for a project. Exit status.
int run_ci(const CiOptions& options, Context& context);

}  // namespace backendgen
