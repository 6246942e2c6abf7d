// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostic.h"
#include "description/description.h"

namespace backendgen {

/// Reports C++ names of a description that cannot stand beside each other: a function with the name
/// of the runtime's type, and a function or type whose name is a namespace in another's.
void check_cpp_names(const Description& description, Diagnostics& problems);

}  // namespace backendgen
