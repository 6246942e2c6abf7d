// SPDX-License-Identifier: Apache-2.0
#include "commands/wheel.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/build_wheel.h"
#include "commands/runtime_wheel.h"
#include "commands/wheel_releases.h"
#include "commands/wheel_steps.h"
#include "description/load.h"
#include "description/read.h"
#include "glue/analyze.h"
#include "glue/torch_option.h"
#include "torch/releases.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// A project whose wheel is wanted.
struct Project {
  const WheelOptions& options;
  const OpenedDescription& opened;
  Description description;
  std::string python;
  fs::path out;
  std::string runtime = {};  // of [wheel.runtime], for the tools; empty without it

  fs::path build() const { return opened.folder / "build"; }
};

/// What is wrong with the description for a PyTorch; false, reported, when it cannot be built.
bool judge(const Project& project, const std::string& python, std::optional<Analysis>& analysis,
           Context& context) {
  AnalyzeOptions how;
  how.python = python;
  analysis = analyze(project.opened, how, context);
  context.console.report(analysis->problems, project.opened.source);
  return !analysis->problems.has_errors();
}

/// The releases to build for, whose PyTorch is there already or comes with pip.
std::optional<std::vector<WheelRelease>> releases_of(Project& project, Context& context) {
  const WheelOptions& options = project.options;
  std::vector<WheelRelease> releases = {{{}, project.python, {}}};
  if (!options.torch.empty()) {
    Diagnostics problems;
    project.description = read_partial_description(project.opened.source, problems);
    context.console.report(problems, project.opened.source);
    if (problems.has_errors()) return std::nullopt;
    auto found =
        find_releases({options.torch, project.python, options.with_pip, options.local_version},
                      project.description, context);
    if (!found) return std::nullopt;
    releases = std::move(*found);
  }
  for (WheelRelease& release : releases) {
    std::optional<Analysis> analysis;
    if (release.python.empty()) continue;  // its operators are known once pip has installed it
    if (!judge(project, release.python, analysis, context)) return std::nullopt;
    project.description = analysis->description;
    release.version = analysis->torch->version;
  }
  context.console.status("Checked", project.opened.source.path());
  return releases;
}

/// Refuses to replace a wheel for other releases that has the name of the one to be made.
bool name_is_free(const Project& project, const std::vector<WheelRelease>& releases,
                  Context& context) {
  if (project.options.local_version || context.disk.look(project.out) != Entry::kFolder) {
    return true;
  }
  std::vector<std::string> minors;
  for (const WheelRelease& release : releases) minors.push_back(release.version.minor_text());
  return run_tool(project.python, "occupied",
                  {shown(project.out, context), project.description.package.value,
                   project.description.version.value, fmt::format("{}", fmt::join(minors, ",")),
                   tested_minors()},
                  context.folder, "the wheels that are there could not be read", context);
}

/// What is done to a wheel that was built, as the options say: each tool may give it a new name.
bool finish(const Project& project, const WheelBuild& build, const std::string& minor,
            BuiltWheel& wheel, Context& context) {
  const Description& description = project.description;
  const auto change = [&](const char* tool, const std::vector<std::string>& words,
                          const char* unexpected) {
    if (!run_tool(wheel.python, tool, words, build.folder, unexpected, context)) return false;
    wheel.file = wheel_in(build.folder, context.disk);
    return true;
  };
  if (project.options.debug_symbols) {
    wheel.symbols = project.build() / ("symbols-" + minor + ".zip");
    const std::string libraries = fmt::format("{}/lib/{}", description.package.value, minor);
    if (!change("debug_symbols", {wheel.file.string(), wheel.symbols.string(), libraries},
                "the debug symbols could not be split off")) {
      return false;
    }
  }
  if (project.options.repair &&
      !change("repair", repair_words(wheel.file, description, project.runtime),
              "the wheel could not be repaired")) {
    return false;
  }
  return !project.options.local_version || change("relabel", {wheel.file.string(), minor},
                                                  "the wheel could not be given another version");
}

/// Builds, names and verifies the wheel for one release.
std::optional<BuiltWheel> make_wheel(Project& project, const WheelRelease& release,
                                     const std::string& position, Context& context) {
  const std::string name = release.version.minor_text();
  const fs::path log =
      project.build() / (position.empty() ? "wheel.log" : "wheel-" + name + ".log");
  std::optional<TemporaryEnvironment> environment;
  WheelBuild build = {project.opened.folder,
                      project.build() / "wheel" / name,
                      log,
                      release.python,
                      release.version,
                      position};
  if (build.python.empty()) {
    environment.emplace(project.python, project.build() / "wheel-environment", context);
    if (!environment->make(release, log)) return std::nullopt;
    build.python = environment->python();
    std::optional<Analysis> analysis;
    if (!judge(project, build.python, analysis, context)) return std::nullopt;
    project.description = analysis->description;
    build.torch = analysis->torch->version;
  }
  build.debug_symbols = project.options.debug_symbols;
  auto wheel = project.options.from.empty()
                   ? build_wheel(build, project.description, context)
                   : take_wheel(build, context.folder / project.options.from, context);
  if (!wheel || !finish(project, build, name, *wheel, context)) return std::nullopt;
  const Description& description = project.description;
  const bool good = run_tool(wheel->python, "verify_wheel",
                             {wheel->file.string(), description.name.value,
                              description.package.value, name, project.opened.folder.string(),
                              project.options.smoke ? "smoke" : "no-smoke", project.runtime},
                             build.folder, "the wheel could not be verified", context);
  return good ? wheel : std::nullopt;
}

/// Joins the wheels for several releases; the path of the result.
std::optional<fs::path> join(const Project& project, const std::vector<BuiltWheel>& wheels,
                             Context& context) {
  const fs::path folder = project.build() / "wheel" / "merged";
  if (!empty_folder(folder, context)) return std::nullopt;
  std::vector<std::string> arguments = {folder.string(), "quiet", tested_minors()};
  for (const BuiltWheel& wheel : wheels) arguments.push_back(wheel.file.string());
  if (!run_tool(project.python, "merge", arguments, folder, "the wheels could not be merged",
                context)) {
    return std::nullopt;
  }
  return wheel_in(folder, context.disk);
}

}  // namespace

int run_wheel(const WheelOptions& options, Context& context) {
  if (options.runtime) return run_runtime_wheel(options, context);
  const auto started = std::chrono::steady_clock::now();
  const auto opened = open_description(options.description, context);
  if (!opened) return kNo;
  if (!options.from.empty() && !options.torch.empty()) {
    context.refuse("`--from` does not go with `--torch`",
                   "finish the wheel of each release, and join them: `backendgen merge`");
    return kUsage;
  }
  if (options.with_pip && options.torch.empty()) {
    context.refuse("`--with-pip` goes with `--torch`",
                   "name the releases: `backendgen wheel --torch 2.12,2.13 --with-pip`");
    return kUsage;
  }
  Project project = {options, *opened, {}, options.python, options.out};
  if (project.python.empty()) project.python = default_python(context);
  project.out = options.out.empty() ? opened->folder / "dist" : context.folder / options.out;
  const auto releases = releases_of(project, context);
  if (!releases) return kNo;
  if (options.from.empty() && context.disk.look(opened->folder / "setup.py") != Entry::kFile) {
    return context.refuse(fmt::format("{} has no setup.py", shown(opened->folder, context)),
                          fmt::format("to use only CMake, build the target `{}_wheel`, and name "
                                      "the wheel: `--from WHEEL`",
                                      project.description.name.value));
  }
  const auto runtime = runtime_facts(*opened, project.description, context);
  if (!runtime) return kNo;
  project.runtime = *runtime;
  if (!name_is_free(project, *releases, context)) return kNo;

  std::vector<BuiltWheel> wheels;
  for (const WheelRelease& release : *releases) {
    const std::string position =
        releases->size() == 1 ? "" : fmt::format("{} of {}", wheels.size() + 1, releases->size());
    auto wheel = make_wheel(project, release, position, context);
    if (!wheel) return kNo;
    wheels.push_back(std::move(*wheel));
  }
  std::vector<fs::path> files;
  for (const BuiltWheel& wheel : wheels) files.push_back(wheel.file);
  if (wheels.size() > 1 && !options.local_version) {
    const auto joined = join(project, wheels, context);
    if (!joined) return kNo;
    files = {*joined};
  }
  if (!make_folders(project.out, context)) return kNo;
  for (std::size_t index = 0; index < wheels.size(); ++index) {
    const BuiltWheel& wheel = wheels[index];
    if (wheel.symbols.empty()) continue;
    // Beside the wheel, by its name; where several were joined, one archive for each release.
    std::string name = files[files.size() == wheels.size() ? index : 0].stem().string();
    if (files.size() != wheels.size()) name += "-torch" + wheel.torch.minor_text();
    if (!deliver(wheel.symbols, project.out / (name + ".debug.zip"), context)) return kNo;
  }
  for (const fs::path& file : files) {
    if (!finish_wheel(file, project.out, started, context)) return kNo;
  }
  return kDone;
}

}  // namespace backendgen
