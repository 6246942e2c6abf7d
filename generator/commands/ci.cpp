// SPDX-License-Identifier: Apache-2.0
#include "commands/ci.h"

#include <fmt/format.h>

#include "base/text.h"
#include "description/load.h"
#include "glue/project.h"
#include "torch/install.h"

namespace backendgen {

namespace {

/// What a project is tested with unless it says otherwise: the release whose CPU wheel BackendKit's
/// own CI takes. docs/compatibility.md has all releases that BackendKit is tested with.
const std::vector<std::string> kReleases = {"2.13.0"};

}  // namespace

int run_ci(const CiOptions& options, Context& context) {
  const auto loaded = load(options.description, context);
  if (!loaded) return kNo;
  const Description& description = loaded->description;

  std::vector<std::string> releases;
  if (options.torch.empty()) releases = kReleases;
  for (const std::string_view part : split(options.torch, ",")) {
    if (options.torch.empty()) break;
    const std::string word(part);
    const auto version = TorchVersion::parse(word);
    if (!version || version->text() != word) {
      return context.refuse(fmt::format("`{}` is not a release of PyTorch", word),
                            "write releases such as `--torch 2.12.1,2.13.0`");
    }
    releases.push_back(word);
  }
  for (const std::string& release : releases) {
    if (admits(description.torch_requires.value, *TorchVersion::parse(release))) continue;
    return context.refuse(
        fmt::format("`requires` of the description does not admit PyTorch {}", release),
        "name releases it admits: `--torch VERSION,VERSION`");
  }
  std::string command = "backendgen ci " + options.service;
  if (!options.torch.empty()) command += " --torch " + options.torch;
  context.console.data(
      fmt::format("# Made by `{}`. To change it, run that again or edit it: it is yours.\n",
                  command) +
      plan_ci(description, options.service, releases));
  return kDone;
}

}  // namespace backendgen
