// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "description/description.h"

namespace backendgen {

/// The files that `libraries` of [wheel.runtime] means, relative to the project's `folder`, sorted,
/// each once. A pattern that no file matches is an error.
std::vector<std::string> find_runtime_libraries(const Description& description,
                                                const std::filesystem::path& folder,
                                                const Disk& disk, Diagnostics& problems);

/// The same of `license_files`.
std::vector<std::string> find_runtime_licenses(const Description& description,
                                               const std::filesystem::path& folder,
                                               const Disk& disk, Diagnostics& problems);

}  // namespace backendgen
