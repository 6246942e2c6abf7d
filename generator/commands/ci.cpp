// SPDX-License-Identifier: Apache-2.0
#include "commands/ci.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "description/load.h"
#include "glue/project.h"

namespace backendgen {

namespace {

/// The releases that the option `--torch` names, sorted; nothing, reported, for a wrong one.
std::optional<std::vector<TorchRelease>> named_releases(const std::string& option,
                                                        const std::string& requirement,
                                                        Context& context) {
  std::vector<TorchRelease> releases;
  for (const std::string_view part : split(option, ",")) {
    const std::string word(part);
    const auto version = TorchVersion::parse(word);
    if (!version || version->text() != word) {
      context.refuse(fmt::format("`{}` is not a release of PyTorch", word),
                     "write releases such as `--torch 2.12.1,2.13.0`");
      return std::nullopt;
    }
    if (!admits(requirement, *version)) {
      context.refuse(fmt::format("`requires` of the description does not admit PyTorch {}", word),
                     "name releases it admits: `--torch VERSION,VERSION`");
      return std::nullopt;
    }
    const auto same = [&version](const TorchRelease& release) {
      return release.version.minor_text() == version->minor_text();
    };
    if (std::any_of(releases.begin(), releases.end(), same)) {
      context.refuse(fmt::format("`--torch` names PyTorch {} twice", version->minor_text()),
                     fmt::format("name one release of {}", version->minor_text()),
                     "a wheel has one library for each minor release");
      return std::nullopt;
    }
    releases.push_back(release_of(*version));
  }
  std::sort(releases.begin(), releases.end(),
            [](const TorchRelease& a, const TorchRelease& b) { return a.version < b.version; });
  return releases;
}

std::string command_line(const CiOptions& options) {
  std::string command = "backendgen ci " + options.service;
  if (!options.torch.empty()) command += " --torch " + options.torch;
  if (options.nightly) command += " --nightly";
  if (options.crcr) command += " --crcr";
  return command;
}

}  // namespace

int run_ci(const CiOptions& options, Context& context) {
  if (options.nightly && options.crcr) {
    return context.refuse("`--nightly` and `--crcr` are two files",
                          "run `backendgen ci` once for each");
  }
  if (options.crcr && options.service != "github") {
    return context.refuse("PyTorch's CI relay only starts workflows on GitHub",
                          "`backendgen ci github --crcr`");
  }
  const auto loaded = load(options.description, context);
  if (!loaded) return kNo;
  const Description& description = loaded->description;
  const std::string& requirement = description.torch_requires.value;

  CiPlan plan;
  plan.service = options.service;
  if (options.nightly) plan.kind = CiKind::kNightly;
  if (options.crcr) plan.kind = CiKind::kCrcr;
  if (options.torch.empty()) {
    plan.releases = admitted_releases(requirement);
  } else {
    const auto named = named_releases(options.torch, requirement, context);
    if (!named) return kNo;
    plan.releases = *named;
  }
  if (plan.releases.empty()) {
    return context.refuse(
        fmt::format("`requires` of the description admits no PyTorch from {} to {}",
                    oldest().minor_text(), newest_tested().minor_text()),
        "name a release: `--torch VERSION`", "these are the releases BackendKit was tested with");
  }
  context.console.data(
      fmt::format("# Made by `{}`. To change it, run that again or edit it: it is yours.\n",
                  command_line(options)) +
      plan_ci(description, plan));
  return kDone;
}

}  // namespace backendgen
