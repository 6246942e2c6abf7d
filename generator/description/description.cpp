// SPDX-License-Identifier: Apache-2.0
#include "description/description.h"

namespace backendgen {

std::string Description::module() const {
  return layout == Layout::kSubmodule ? package.value + ".torch" : package.value;
}

std::string Description::runtime_requirement() const {
  return runtime_package.value + runtime_requires.value;
}

}  // namespace backendgen
