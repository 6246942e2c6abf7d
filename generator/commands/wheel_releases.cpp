// SPDX-License-Identifier: Apache-2.0
#include "commands/wheel_releases.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/tool.h"
#include "torch/releases.h"
#include "torch/search.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr int kPatches = 100;  // more than any release had

bool same_minor(const TorchVersion& one, const TorchVersion& other) {
  return one.major == other.major && one.minor == other.minor;
}

/// Whether a release was named, and not a folder: "2.11" or "2.11.1".
std::optional<TorchVersion> as_release(const std::string& name, const Context& context) {
  if (context.disk.look(context.folder / name) == Entry::kFolder) return std::nullopt;
  const auto version = TorchVersion::parse(name);
  const bool whole = version && (name == version->text() || name == version->minor_text());
  return whole ? version : std::nullopt;
}

/// The Python of the environment that a PyTorch lies in: <environment>/lib/python3.11/site-packages
/// has the folder `torch`. Empty where there is none.
std::string python_of(const TorchInstall& torch, const Disk& disk) {
  const fs::path packages = torch.folder.parent_path();
  const fs::path environment = packages.parent_path().parent_path().parent_path();
  const fs::path python = environment / "bin" / "python";
  const bool there = packages.filename() == "site-packages" && disk.look(python) == Entry::kFile;
  return there ? python.string() : "";
}

class Finder {
 public:
  Finder(const WheelReleasesOptions& options, const Description& description, Context& context)
      : options_(options), requires_(description.torch_requires.value), context_(context) {
    Diagnostics ignored;  // without a PyTorch of its own, this Python is of no use here
    active_ = find_torch(options.python, context.disk, context.process, ignored);
  }

  /// One of the names; nothing, reported in `problems`, when it cannot be built for.
  std::optional<WheelRelease> find(const std::string& name, Diagnostics& problems) {
    const auto wanted = as_release(name, context_);
    if (wanted && !judge(*wanted, name, problems)) return std::nullopt;
    if (wanted && active_ && fits(active_->version, *wanted, name)) {
      return admitted({active_->version, options_.python, {}}, problems);
    }
    Diagnostics of_search;
    const TorchInstall* active = active_ ? &*active_ : nullptr;
    const auto torch = search_torch(name, "torch", active, context_, of_search);
    if (!torch) {
      if (wanted && options_.with_pip) return with_pip(*wanted, name);
      for (const Diagnostic& found : of_search.sorted()) {
        Diagnostic& problem = problems.error(found.message);
        problem.notes = found.notes;
        problem.help = found.help;
        if (wanted) problem.help.push_back("or let pip get it: add `--with-pip`");
      }
      return std::nullopt;
    }
    const std::string python = python_of(*torch, context_.disk);
    if (python.empty()) {
      problems
          .error(fmt::format("PyTorch {} in `{}` belongs to no Python", torch->version.text(),
                             torch->folder.generic_string()))
          .help.push_back("name an environment with a Python that has this PyTorch");
      return std::nullopt;
    }
    return admitted({torch->version, python, {}}, problems);
  }

 private:
  static bool fits(const TorchVersion& version, const TorchVersion& wanted,
                   const std::string& name) {
    return name == wanted.text() ? version == wanted : same_minor(version, wanted);
  }

  bool judge(const TorchVersion& wanted, const std::string& name, Diagnostics& problems) const {
    if (wanted < oldest()) {
      problems.error(fmt::format("PyTorch {} is too old: a backend needs {} or newer", name,
                                 oldest().minor_text()));
      return false;
    }
    bool some = false;
    for (int patch = 0; patch < kPatches && !some; ++patch) {
      const TorchVersion one = {wanted.major, wanted.minor, patch};
      some = (name != wanted.text() || one == wanted) && admits_it(one);
    }
    if (!some) refuse(name, problems);
    return some;
  }

  bool admits_it(const TorchVersion& version) const {
    return requires_.empty() || admits(requires_, version);
  }

  void refuse(const std::string& name, Diagnostics& problems) const {
    problems
        .error(fmt::format("PyTorch {} does not meet `requires`, which is `{}`", name, requires_))
        .help.push_back("leave it out of `--torch`, or change [torch] requires in backend.toml");
  }

  std::optional<WheelRelease> admitted(WheelRelease release, Diagnostics& problems) const {
    if (admits_it(release.version)) return release;
    refuse(release.version.text(), problems);
    return std::nullopt;
  }

  WheelRelease with_pip(const TorchVersion& wanted, const std::string& name) const {
    std::string requirement = "torch==" + (name == wanted.text() ? name : name + ".*");
    if (!requires_.empty()) requirement += "," + requires_;
    return {wanted, {}, requirement};
  }

  const WheelReleasesOptions& options_;
  const std::string& requires_;
  Context& context_;
  std::optional<TorchInstall> active_;
};

/// Adds an error for a release that is there twice, and for one that is left out.
void judge_row(const std::vector<WheelRelease>& releases, bool holes, Diagnostics& problems) {
  for (std::size_t i = 1; i < releases.size(); ++i) {
    const TorchVersion& before = releases[i - 1].version;
    const TorchVersion& here = releases[i].version;
    if (same_minor(before, here)) {
      problems.error(fmt::format("`--torch` has PyTorch {} twice", here.minor_text()))
          .notes.push_back("a library serves every patch release of a minor release");
      continue;
    }
    const auto missing = holes ? std::nullopt : missing_between(before, here);
    if (missing) {
      Diagnostic& error =
          problems.error(fmt::format("`--torch` leaves out PyTorch {}", missing->minor_text()));
      error.notes.push_back(fmt::format(
          "pip would install a wheel for PyTorch {} and {} there too, and it could not be loaded",
          before.minor_text(), here.minor_text()));
      error.help.push_back(
          "add it, or build wheels of their own: `--local-version` adds the release to their "
          "names");
    }
  }
}

}  // namespace

std::optional<std::vector<WheelRelease>> find_releases(const WheelReleasesOptions& options,
                                                       const Description& description,
                                                       Context& context) {
  Diagnostics problems;
  Finder finder(options, description, context);
  std::vector<WheelRelease> releases;
  bool whole = true;
  for (const std::string_view part : split(options.names, ",")) {
    const std::string name(part);
    if (name.empty()) {
      problems.error("`--torch` has an empty name among its commas")
          .help.push_back("write releases as in `--torch 2.11,2.12,2.13`");
      continue;
    }
    auto release = finder.find(name, problems);
    whole = whole && release.has_value();
    if (release) releases.push_back(std::move(*release));
  }
  std::sort(releases.begin(), releases.end(),
            [](const auto& one, const auto& other) { return one.version < other.version; });
  if (whole) judge_row(releases, options.holes, problems);
  for (const Diagnostic& problem : problems.sorted()) context.console.report(problem);
  if (problems.has_errors()) return std::nullopt;
  return releases;
}

TemporaryEnvironment::TemporaryEnvironment(std::string base, fs::path folder, Context& context)
    : base_(std::move(base)), folder_(std::move(folder)), context_(context) {}

TemporaryEnvironment::~TemporaryEnvironment() {
  std::ignore = context_.process.run(
      tool_command(base_, "temporary_environment", {"remove", folder_.string()}, {}));
}

bool TemporaryEnvironment::make(const WheelRelease& release, const fs::path& log) {
  context_.console.status("Installing",
                          fmt::format("{} for this build, with pip", release.requirement));
  const Outcome outcome = context_.process.run(
      tool_command(base_, "temporary_environment",
                   {"make", folder_.string(), release.requirement, log.string()}, {}));
  return show_tool(outcome, "the environment for the build could not be made", context_) == kDone;
}

}  // namespace backendgen
