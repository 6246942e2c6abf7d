// SPDX-License-Identifier: Apache-2.0
#include "description/describe_json.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "description/keys.h"

namespace backendgen {

namespace {

std::string entry_points_json(const Description& description) {
  std::vector<std::string> groups;
  for (const EntryPointGroup& group : description.all_entry_points()) {
    std::vector<std::string> entries;
    for (const EntryPoint& entry : group.entries) {
      entries.push_back(quote(fmt::format("{} = {}", entry.name.value, entry.target.value)));
    }
    groups.push_back(fmt::format("{}: [{}]", quote(group.name.value), fmt::join(entries, ", ")));
  }
  return fmt::format("{{{}}}", fmt::join(groups, ", "));
}

}  // namespace

std::string describe_json(const Description& description,
                          const std::optional<TorchInstall>& torch) {
  std::vector<std::string> members;
  const auto add = [&members](std::string_view key, const std::string& json) {
    members.push_back(fmt::format("  \"{}\": {}", key, json));
  };
  add("name", quote(description.name.value));
  add("display_name", quote(description.display_name.value));
  add("package", quote(description.package.value));
  add("module", quote(description.module()));
  add("layout", quote(word_of(description.layout)));
  add("version", quote(description.version.value));
  add("summary", quote(description.summary.value));
  add("header", quote(description.header.value));
  add("torch_requires", quote(description.torch_requires.value));
  add("kernels", fmt::format("{}", description.kernels.size()));
  add("entry_points", entry_points_json(description));
  if (!description.runtime_package.value.empty()) {
    add("runtime_requirement", quote(description.runtime_requirement()));
  }
  if (torch) {
    const TorchVersion& version = torch->version;
    add("torch_version", quote(version.text()));
    add("torch_newest_tested", quote(newest_tested().minor_text()));
    add("torch_requirement", quote(fmt::format("torch>={},<{}.{}", version.minor_text(),
                                               version.major, version.minor + 1)));
    add("library_directory",
        quote(fmt::format("{}/lib/{}", description.package.value, version.minor_text())));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(members, ",\n"));
}

}  // namespace backendgen
