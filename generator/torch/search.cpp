// SPDX-License-Identifier: Apache-2.0
#include "torch/search.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// The folders `torch` that `folder` stands for; at most one in practice.
std::vector<fs::path> torch_folders(const fs::path& folder, const Disk& disk) {
  std::vector<fs::path> candidates = {folder, folder / "torch",
                                      folder / "Lib" / "site-packages" / "torch"};
  for (const char* library : {"lib", "lib64"}) {
    for (const std::string& name : disk.list(folder / library)) {
      if (name.starts_with("python") || name.starts_with("pypy")) {
        candidates.push_back(folder / library / name / "site-packages" / "torch");
      }
    }
  }
  std::erase_if(candidates, [&](const fs::path& candidate) {
    return disk.look(candidate / "version.py") != Entry::kFile;
  });
  return candidates;
}

/// Whether a text is a release: "2.11" or "2.11.1".
bool is_release(const std::string& text) {
  const auto version = TorchVersion::parse(text);
  return version && (text == version->minor_text() || text == version->text());
}

/// The folders in which virtual environments may lie, each once.
std::vector<fs::path> places(const TorchInstall* active, const Context& context) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    fs::path normal = folder.lexically_normal();
    if (normal.filename().empty() && normal.has_relative_path()) normal = normal.parent_path();
    if (std::find(folders.begin(), folders.end(), normal) == folders.end()) {
      folders.push_back(normal);
    }
  };
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto environment = context.environment(variable);
    if (environment && !environment->empty()) add(fs::path(*environment).parent_path());
  }
  if (active != nullptr) {
    // <environment>/lib/python3.11/site-packages/torch
    const fs::path packages = active->folder.parent_path();
    const fs::path library = packages.parent_path().parent_path();
    if (packages.filename() == "site-packages") add(library.parent_path().parent_path());
  }
  for (const fs::path& folder : {fs::path(), fs::path(".tox"), fs::path(".nox")}) {
    add(context.folder / folder);
  }
  return folders;
}

std::optional<TorchInstall> search_folder(const fs::path& folder, const std::string& option,
                                          Context& context, Diagnostics& problems) {
  const auto folders = torch_folders(folder, context.disk);
  if (!folders.empty()) return open_torch(folders.front(), context.disk, problems);
  problems.error(fmt::format("no PyTorch in `{}`", folder.generic_string()))
      .help.push_back(fmt::format(
          "`--{}` takes a folder `torch`, the `site-packages` that it is in, or an environment",
          option));
  return std::nullopt;
}

}  // namespace

std::optional<TorchInstall> search_torch(const std::string& named, const std::string& option,
                                         const TorchInstall* active, Context& context,
                                         Diagnostics& problems) {
  const fs::path folder = context.folder / named;
  if (context.disk.look(folder) == Entry::kFolder) {
    return search_folder(folder, option, context, problems);
  }
  if (!is_release(named)) {
    problems
        .error(fmt::format("`--{} {}` is neither a folder nor a release of PyTorch", option, named))
        .help.push_back(fmt::format("write `--{} 2.11`, or name a folder with PyTorch", option));
    return std::nullopt;
  }
  const TorchVersion wanted = *TorchVersion::parse(named);
  const bool exact = named == wanted.text();
  const auto looked = places(active, context);
  std::optional<TorchInstall> best;
  std::set<TorchVersion> others;
  for (const fs::path& place : looked) {
    for (const std::string& name : context.disk.list(place)) {
      for (const fs::path& torch : torch_folders(place / name, context.disk)) {
        Diagnostics ignored;  // what is broken, or too old, is not what is wanted
        auto found = open_torch(torch, context.disk, ignored);
        if (!found) continue;
        const TorchVersion& version = found->version;
        const bool fits = exact ? version == wanted
                                : version.major == wanted.major && version.minor == wanted.minor;
        if (!fits) others.insert(version);
        if (fits && (!best || best->version < version)) best = std::move(found);
      }
    }
  }
  if (best) return best;
  Diagnostic& error = problems.error(fmt::format("found no PyTorch {}", named));
  std::vector<std::string> shown;
  for (const fs::path& place : looked) shown.push_back(place.generic_string());
  error.notes.push_back(fmt::format("looked for environments in {}", fmt::join(shown, ", ")));
  if (!others.empty()) {
    std::vector<std::string> releases;
    for (const TorchVersion& version : others) releases.push_back(version.text());
    error.notes.push_back(fmt::format("found PyTorch {} there", fmt::join(releases, ", ")));
  }
  error.help.push_back(
      fmt::format("install it into an environment there: `python -m pip install torch=={}`",
                  exact ? named : named + ".*"));
  error.help.push_back(fmt::format("or name its folder: `--{} DIR`", option));
  return std::nullopt;
}

}  // namespace backendgen
