// SPDX-License-Identifier: Apache-2.0
#include "description.h"

namespace backendgen {

const char* policy_key(CastPolicy policy) {
  switch (policy) {
    case CastPolicy::kLowerPrecisionFp:
      return "lower_precision_fp";
    case CastPolicy::kFp32:
      return "fp32";
    case CastPolicy::kFp32SetOptDtype:
      return "fp32_set_opt_dtype";
    case CastPolicy::kPromote:
      break;
  }
  return "promote";
}

std::string Description::module() const {
  return layout == Layout::kSubmodule ? package.value + ".torch" : package.value;
}

}  // namespace backendgen
