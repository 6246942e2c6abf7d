// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/context.h"
#include "base/diagnostic.h"
#include "description/description.h"
#include "torch/install.h"

namespace backendgen {

/// The Python that commands use unless told otherwise: the active virtual environment's, else
/// `python3`.
std::string default_python(const Context& context);

/// The PyTorch that a command works for: the folder or release that `--torch` names, as
/// `search_torch` finds it, else that of `python`, or of the default Python where that is empty.
std::optional<TorchInstall> choose_torch(const std::string& option, const std::string& python,
                                         Context& context, Diagnostics& problems);

/// Adds an error, at `requires` of the description, when it has one that does not admit this
/// PyTorch.
void check_release(const Description& description, const TorchInstall& torch,
                   Diagnostics& problems);

}  // namespace backendgen
