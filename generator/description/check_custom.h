// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "torch/schema.h"

namespace backendgen {

/// Whether an operator of the vendor can be registered. Why it cannot: a type without a C++ or
/// Python counterpart, a name that either language or PyTorch reserves, a default that is no
/// literal of its type, no tensor to go by.
Result<void> judge_custom(const Schema& schema);

}  // namespace backendgen
