// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/listing.h"

namespace backendgen {

/// The report as one HTML page that needs no network and no other file: counts, groups with their
/// coverage, and a table of the operators, which JavaScript makes searchable.
std::string operators_page(const OperatorReport& report);

}  // namespace backendgen
