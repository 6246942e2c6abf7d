// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "torch/schema.h"

namespace backendgen {

/// Why an operator of the vendor cannot be registered: a type without a C++ or Python counterpart,
/// a name that either language or PyTorch reserves, a default that is no literal of its type, no
/// tensor to go by. Empty when it can.
std::string complaint_about_custom(const Schema& schema);

}  // namespace backendgen
