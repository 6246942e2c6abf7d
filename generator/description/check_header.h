// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "description/description.h"

namespace backendgen {

/// Warns when the runtime's header is neither in `folder`, that of the description, nor in its
/// csrc/. It may still be in an include folder of a library: only the compiler knows those.
void warn_if_no_header(const Description& description, const std::filesystem::path& folder,
                       const Disk& disk, Diagnostics& problems);

}  // namespace backendgen
