// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace backendkit {

/// An operation of the backend itself that torch.profiler shows as a range, until the end of the
/// scope. Costs almost nothing while no profiler runs. Defined in the glue, so that its users need
/// not include PyTorch's headers.
class ProfiledRange {
 public:
  explicit ProfiledRange(const char* name);
  ~ProfiledRange();
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  struct Function;
  std::unique_ptr<Function> function_;  // null while no profiler runs
};

}  // namespace backendkit
