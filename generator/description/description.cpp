// SPDX-License-Identifier: Apache-2.0
#include "description/description.h"

#include <algorithm>

namespace backendgen {
namespace {

/// Adds a group, or what it has to the group of its name; an entry that is there stays as it is.
void add(std::vector<EntryPointGroup>& all, const EntryPointGroup& more) {
  const auto group = std::find_if(all.begin(), all.end(), [&](const EntryPointGroup& other) {
    return other.name.value == more.name.value;
  });
  if (group == all.end()) {
    all.push_back(more);
    return;
  }
  for (const EntryPoint& entry : more.entries) {
    const bool there =
        std::any_of(group->entries.begin(), group->entries.end(),
                    [&](const EntryPoint& other) { return other.name.value == entry.name.value; });
    if (!there) group->entries.push_back(entry);
  }
}

}  // namespace

std::string Description::module() const {
  return layout == Layout::kSubmodule ? package.value + ".torch" : package.value;
}

std::vector<EntryPointGroup> Description::all_entry_points() const {
  std::vector<EntryPointGroup> all = {
      {{"torch.backends", {}}, {{{package.value, {}}, {package.value + ":_autoload", {}}}}}};
  for (const EntryPointGroup& more : entry_points) add(all, more);
  // From 2.14 on, PyTorch looks here for a process group that it does not know yet.
  const Text registers = {module() + "._distributed:register_entry", {}};
  if (distributed) add(all, {{"torch.distributed.backends", {}}, {{{group.value, {}}, registers}}});
  return all;
}

std::string Description::runtime_requirement() const {
  return runtime_package.value + runtime_requires.value;
}

}  // namespace backendgen
