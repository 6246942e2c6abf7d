// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/context.h"
#include "base/diagnostic.h"
#include "torch/install.h"

namespace backendgen {

/// The PyTorch that `named` names for the option `--<option>`, without running a Python.
///
/// A folder: the folder `torch` itself, the `site-packages` that it is in, or a virtual environment
/// with it. A release, "2.11" or "2.11.1": the newest such PyTorch among the virtual environments
/// that lie beside the active one, beside the one of the PyTorch in `active` (may be null), in the
/// working folder, and in its `.tox` and `.nox`. Errors name the places and what was found there.
std::optional<TorchInstall> search_torch(const std::string& named, const std::string& option,
                                         const TorchInstall* active, Context& context,
                                         Diagnostics& problems);

}  // namespace backendgen
