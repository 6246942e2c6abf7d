// SPDX-License-Identifier: Apache-2.0
#include "base/text_diff.h"

#include <sstream>
#include <vector>

#include <dtl/dtl.hpp>

#include "base/text.h"

namespace backendgen {

std::string unified_diff(const std::string& before, const std::string& after,
                         const std::string& before_name, const std::string& after_name) {
  dtl::Diff<std::string> diff(lines_of(before), lines_of(after));
  diff.compose();
  diff.composeUnifiedHunks();
  std::ostringstream out;
  out << "--- " << before_name << "\n+++ " << after_name << "\n";
  diff.printUnifiedFormat(out);
  return out.str();
}

}  // namespace backendgen
