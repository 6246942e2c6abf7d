// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace backendkit {

/// Something of the backend's own that torch.profiler shows as a range, from here to the end of the
/// scope. Costs next to nothing while nobody profiles. Defined in the glue, so that what uses it
/// does not pay for PyTorch's headers.
class ProfiledRange {
 public:
  explicit ProfiledRange(const char* name);
  ~ProfiledRange();
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  struct Function;
  std::unique_ptr<Function> function_;  // null while nobody profiles
};

}  // namespace backendkit
