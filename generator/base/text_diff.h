// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace backendgen {

/// The difference between two texts in unified format, with the two names in its head.
std::string unified_diff(const std::string& before, const std::string& after,
                         const std::string& before_name, const std::string& after_name);

}  // namespace backendgen
