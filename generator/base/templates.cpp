// SPDX-License-Identifier: Apache-2.0
#include "base/templates.h"

#include <algorithm>

namespace backendgen {

const TemplateFile& find_template(std::string_view path) {
  const auto all = templates();
  const auto found = std::ranges::find(all, path, &TemplateFile::path);
  if (found == all.end()) throw InternalError("template " + std::string(path) + ": missing");
  return *found;
}

std::span<const TemplateFile> templates_below(std::string_view folder) {
  const auto all = templates();
  const auto is_below = [&](const TemplateFile& file) { return file.path.starts_with(folder); };
  const auto first = std::ranges::find_if(all, is_below);
  return {first, std::find_if_not(first, all.end(), is_below)};  // they are sorted
}

}  // namespace backendgen
