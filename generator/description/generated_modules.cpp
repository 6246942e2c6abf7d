// SPDX-License-Identifier: Apache-2.0
#include "description/generated_modules.h"

#include <algorithm>
#include <string_view>

#include "base/templates.h"

namespace backendgen {

std::vector<std::string> generated_modules(const Description& description) {
  constexpr std::string_view kEnd = ".py";
  constexpr std::string_view kInit = ".__init__";
  std::vector<std::string> modules;
  const auto add_below = [&](std::string_view folder, const std::string& package) {
    for (const TemplateFile& file : templates_below(folder)) {
      if (!file.path.ends_with(kEnd)) continue;
      std::string name(file.path.substr(folder.size()));
      name.resize(name.size() - kEnd.size());
      std::replace(name.begin(), name.end(), '/', '.');
      name = package + '.' + name;
      if (name.ends_with(kInit)) name.resize(name.size() - kInit.size());
      modules.push_back(std::move(name));
    }
  };
  const bool submodule = description.layout == Layout::kSubmodule;
  add_below("python/common/", description.module());
  add_below(submodule ? "python/submodule/" : "python/package/", description.package.value);
  if (!description.custom.empty()) add_below("custom/python/", description.module());
  return modules;
}

}  // namespace backendgen
