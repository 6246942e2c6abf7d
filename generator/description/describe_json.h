// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "description/description.h"
#include "torch/install.h"

namespace backendgen {

/// A description as one JSON object, for build systems: names, layout, version, entry points, the
/// number of kernels; for a known PyTorch its release and the folder of the library in the package.
std::string describe_json(const Description& description, const std::optional<TorchInstall>& torch);

}  // namespace backendgen
