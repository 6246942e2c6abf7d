// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "base/source.h"

namespace backendgen {

/// A C++ function that the description names for an operator.
struct FunctionUse {
  const Text& function;
  std::string op;
  std::string return_type;
};

/// Reports that one function would need two results: C++ tells functions apart by their parameters.
void report_two_results(const FunctionUse& use, const FunctionUse& earlier, Diagnostics& problems);

}  // namespace backendgen
