// SPDX-License-Identifier: Apache-2.0
#include "commands/new.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "description/keys.h"
#include "description/validate.h"
#include "glue/project.h"
#include "glue/writer.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// What each file is for, as the screen says it; a file that is not in this list has no such words.
std::string purpose(const std::string& path, const Description& description) {
  const std::map<std::string, std::string> purposes = {
      {"backend.toml", "the description; start here"},
      {"CMakeLists.txt", fmt::format("add_torch_backend({})", description.name.value)},
      {"csrc/runtime.h", "your device: the functions PyTorch needs of it"},
      {"csrc/runtime.cpp", "the functions: calls of a simulator, then of your driver"},
      {"csrc/kernels.cpp", "your kernels"},
      {"csrc/simulator.h", "simulated devices; delete these files once your driver works"},
      {description.package.value + "/extras.py", "your Python"},
      {"setup.py", "wheel, with the torch.backends entry point"},
  };
  const auto found = purposes.find(path);
  return found == purposes.end() ? "" : found->second;
}

/// The plan's files in the order a reader wants them; those not named here follow as sorted.
std::vector<std::string> reading_order(const Plan& plan, const Description& description) {
  const std::vector<std::string> first = {"backend.toml",
                                          "CMakeLists.txt",
                                          "csrc/runtime.h",
                                          "csrc/runtime.cpp",
                                          "csrc/kernels.cpp",
                                          "csrc/simulator.h",
                                          "csrc/simulator.cpp",
                                          description.package.value + "/extras.py",
                                          "setup.py"};
  std::vector<std::string> order;
  for (const PlannedFile& file : plan) order.push_back(file.path);
  std::stable_sort(order.begin(), order.end(), [&](const std::string& a, const std::string& b) {
    return std::find(first.begin(), first.end(), a) < std::find(first.begin(), first.end(), b);
  });
  return order;
}

/// Fills in the description of the new project; false when a name cannot be used.
bool describe(const NewOptions& options, const fs::path& path, Description& description,
              Context& context) {
  const bool derived = options.name.empty();
  const std::string name = derived ? path.filename().string() : options.name;
  if (const auto complaint = judge_device_name(name)) {
    context.refuse(fmt::format("`{}` cannot be a device name: {}", name, complaint->message),
                   derived ? "pass `--name NAME`" : complaint->help,
                   derived ? "the last part of the path is the device name" : "");
    return false;
  }
  const bool submodule = options.layout == word_of(Layout::kSubmodule);
  std::string package = options.package;
  if (package.empty()) package = submodule ? name + "_frameworks" : "torch_" + name;
  if (const auto complaint = judge_package_name(package)) {
    context.refuse(fmt::format("`{}` cannot be a package name: {}", package, complaint->message),
                   options.package.empty() ? "pass `--package NAME`" : complaint->help);
    return false;
  }
  description.name.value = name;
  for (const Table& table : tables()) {
    for (const Key& key : keys_of(table.name)) set_default(key, description);
  }
  description.package.value = package;
  description.version.value = key_of("backend", "version").example;
  description.layout = submodule ? Layout::kSubmodule : Layout::kPackage;
  description.imports.push_back({package + ".extras", {}});
  return true;
}

/// A path as a shell takes it.
std::string in_shell(const std::string& path) {
  const bool plain = path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_./-+@%,:=") == std::string::npos;
  if (plain && !path.empty() && path.front() != '-') return path;
  std::string quoted = "'";
  for (const char letter : path) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

int run_new(const NewOptions& options, Context& context) {
  fs::path path = fs::path(options.path).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // "kite/"
  const fs::path folder = context.folder / path;
  const Entry there = context.disk.look(folder);
  if (there == Entry::kFile || there == Entry::kOther) {
    context.refuse(fmt::format("`{}` exists and is not a folder", options.path),
                   "choose another path");
    return kNo;
  }
  if (!context.disk.list(folder).empty()) {
    context.refuse(fmt::format("`{}` exists and is not empty", options.path),
                   "choose another path, or run `backendgen generate` there");
    return kNo;
  }
  Description description;
  const fs::path named = path == "." ? context.folder : path;
  if (!describe(options, named, description, context)) return kNo;

  const Plan plan = plan_project(description);
  Diagnostics problems;
  if (!write_new(plan, folder, context.disk, problems)) {
    for (const Diagnostic& problem : problems.sorted()) context.console.report(problem);
    return kNo;
  }
  const std::string& device = description.name.value;
  context.console.status("Created", fmt::format("{}/, a backend for torch.device(\"{}\")",
                                                path.generic_string(), device));
  for (const std::string& file : reading_order(plan, description)) {
    const std::string words = purpose(file, description);
    context.console.line(words.empty() ? "  + " + file : fmt::format("  + {:<26} {}", file, words));
  }
  context.console.line("");
  context.console.line("next:");
  if (path != ".") context.console.line("  cd " + in_shell(path.generic_string()));
  context.console.line("  pip install --no-build-isolation -e .");
  context.console.line(
      fmt::format("  python -c \"import torch; print(torch.ones(2, device='{}') + 1)\"", device));
  return kDone;
}

}  // namespace backendgen
