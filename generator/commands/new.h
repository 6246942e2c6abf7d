// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct NewOptions {
  std::string path;
  std::string name;     // default: the last part of the path
  std::string package;  // default: torch_NAME, or NAME_frameworks for the layout `submodule`
  std::string layout;   // "package" (default) or "submodule"
};

/// `backendgen new`: writes a project that builds as it is. Exit status.
int run_new(const NewOptions& options, Context& context);

}  // namespace backendgen
