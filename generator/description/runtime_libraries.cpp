// SPDX-License-Identifier: Apache-2.0
#include "description/runtime_libraries.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/glob.h"
#include "base/suggest.h"
#include "base/text.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// Whether a name of a folder is meant; as in a shell, a wildcard means no hidden file.
bool fits(std::string_view part, const std::string& name) {
  return matches(part, name) && (name.front() != '.' || part.front() == '.');
}

/// The paths below `folder` that the parts of a pattern mean.
std::vector<fs::path> expand(std::string_view pattern, const fs::path& folder, const Disk& disk) {
  std::vector<fs::path> found = {fs::path()};
  for (const std::string_view part : split(pattern, "/")) {
    std::vector<fs::path> next;
    for (const fs::path& path : found) {
      if (!has_wildcard(part)) {
        next.push_back(path / part);
        continue;
      }
      for (const std::string& name : disk.list(folder / path)) {
        if (fits(part, name)) next.push_back(path / name);
      }
    }
    found = std::move(next);
  }
  return found;
}

/// Reports a pattern that no file matches.
void report_nothing(const Text& pattern, const fs::path& folder, const Disk& disk,
                    Diagnostics& problems) {
  const std::string name = in_ticks(pattern.value);
  if (disk.look(folder / pattern.value) == Entry::kFolder) {
    problems.error(name + " is a folder", pattern.span)
        .help.push_back(fmt::format("write `{}/*`", pattern.value));
    return;
  }
  const bool wild = has_wildcard(pattern.value);
  Diagnostic& problem = problems.error(
      (wild ? "no file of the project matches " : "the project has no file ") + name, pattern.span);
  const fs::path above = fs::path(pattern.value).parent_path();
  std::vector<std::string> there;
  for (const std::string& one : disk.list(folder / above)) {
    if (disk.look(folder / above / one) != Entry::kFile) continue;
    there.push_back((above / one).generic_string());
  }
  if (const auto near = nearest(pattern.value, there); near && !wild) {
    problem.help.push_back(fmt::format("did you mean `{}`?", *near));
  }
  problem.notes.push_back("paths are relative to the folder of the description");
}

/// The files that any of the patterns means, sorted.
std::vector<std::string> find_files(const std::vector<Text>& patterns, const fs::path& folder,
                                    const Disk& disk, Diagnostics& problems) {
  std::set<std::string> files;
  for (const Text& pattern : patterns) {
    bool any = false;
    for (const fs::path& path : expand(pattern.value, folder, disk)) {
      if (disk.look(folder / path) != Entry::kFile) continue;
      files.insert(path.generic_string());
      any = true;
    }
    if (!any) report_nothing(pattern, folder, disk, problems);
  }
  return {files.begin(), files.end()};
}

}  // namespace

std::vector<std::string> find_runtime_libraries(const Description& description,
                                                const fs::path& folder, const Disk& disk,
                                                Diagnostics& problems) {
  return find_files(description.runtime_libraries, folder, disk, problems);
}

std::vector<std::string> find_runtime_licenses(const Description& description,
                                               const fs::path& folder, const Disk& disk,
                                               Diagnostics& problems) {
  return find_files(description.runtime_license_files, folder, disk, problems);
}

}  // namespace backendgen
