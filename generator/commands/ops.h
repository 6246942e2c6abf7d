// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct OpsOptions {
  std::string pattern;   // see operator_search.h; empty: all operators
  bool schema = false;   // the schemas and C++ functions in place of the states
  bool kernels = false;  // only operators that have a kernel
  std::string format;    // "text" (default), "json" or "html"
  std::string torch;     // a folder or a release, see torch_search.h; empty: the default Python's
  std::string stub;      // operators, with commas between, whose kernels are begun
  std::string since;     // a folder or a release to compare with
};

/// `backendgen ops`: looks up the operators of a PyTorch and says what happens when each is called
/// on the device of the description in the context's folder or above; without one, on a device
/// without kernels. Or prints skeletons of kernels; or what changed between two releases. Exit
/// status.
int run_ops(const OpsOptions& options, Context& context);

}  // namespace backendgen
