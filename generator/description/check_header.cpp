// SPDX-License-Identifier: Apache-2.0
#include "description/check_header.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"

namespace backendgen {

namespace fs = std::filesystem;

void warn_if_no_header(const Description& description, const fs::path& folder, const Disk& disk,
                       Diagnostics& problems) {
  const fs::path header = description.header.value;
  std::vector<std::string> there;
  for (const fs::path& place : {folder, folder / "csrc"}) {
    if (disk.look(place / header) == Entry::kFile) return;
    for (const std::string& name : disk.list((place / header).parent_path())) {
      if (disk.look((place / header).parent_path() / name) != Entry::kFile) continue;
      there.push_back((header.parent_path() / name).generic_string());
    }
  }
  Diagnostic& problem = problems.warning(
      fmt::format("there is no `{}` beside backend.toml or in csrc/", header.generic_string()),
      description.header.span);
  if (const auto near = nearest(header.generic_string(), there)) {
    problem.help.push_back(fmt::format("did you mean `{}`?", *near));
  }
  problem.notes.push_back(
      "the build finds it only in an include folder of a library that is linked");
}

}  // namespace backendgen
