// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "description/description.h"

namespace backendgen {

/// The full names of the Python modules that `generate` writes for a description: `torch_foo`,
/// `torch_foo._loader`, and with custom operators `torch_foo.ops`.
std::vector<std::string> generated_modules(const Description& description);

}  // namespace backendgen
