// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct WheelOptions {
  std::string description;     // a file or folder; empty: backend.toml here or above
  std::string out;             // where the wheel goes; empty: dist/ of the project
  std::string python;          // the interpreter that builds it; empty: the default one
  bool smoke = true;           // import torch and use the device, with the wheel installed aside
  std::string from;            // a wheel that is there; empty: setup.py builds it
  std::string torch;           // releases with commas between; empty: the one that `python` has
  bool with_pip = false;       // of `torch`, those that are not installed
  bool local_version = false;  // the release in the wheel's version; several wheels, not joined
  bool debug_symbols = false;  // with debug information in an archive beside the wheel
  bool runtime = false;        // only the wheel of the driver's libraries: [wheel.runtime]
  bool repair = false;         // a manylinux tag, and the libraries of [wheel] bundle inside
};

/// `backendgen wheel`: builds a project's wheel through pip, for each release of PyTorch, or takes
/// the one that CMake built; opens them, proves them and joins them into one. Exit status.
int run_wheel(const WheelOptions& options, Context& context);

}  // namespace backendgen
