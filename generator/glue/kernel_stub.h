// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "description/description.h"
#include "torch/catalog.h"
#include "torch/install.h"

namespace backendgen {

/// A C++ source with the skeletons of kernels for `operators`, names with commas between: for each
/// its line for backend.toml, and a function of the right type that raises NotImplementedError. It
/// compiles in a project whose description has those lines.
///
/// A function is named for its operator, in the device's namespace (`foo` without a description);
/// one that the description names already keeps its name. Errors: an unknown operator, one named
/// twice, one that no backend can register. Warns of what a better operator would give too.
std::optional<std::string> kernel_stubs(const std::string& operators,
                                        const Description* description, const Catalog& catalog,
                                        const TorchInstall& torch, Diagnostics& problems);

}  // namespace backendgen
