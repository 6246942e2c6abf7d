// SPDX-License-Identifier: Apache-2.0
#include "commands/wheel.h"

#include <chrono>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "base/tool.h"
#include "description/load.h"
#include "glue/analyze.h"
#include "glue/torch_option.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownLogLines = 15;

/// A path for people: relative to where they are, when it lies below.
std::string shown(const fs::path& path, const Context& context) {
  const fs::path relative = path.lexically_relative(context.folder);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return (below ? relative : path).generic_string();
}

/// What to do about a failed build: a kernel that the linker or the compiler names.
std::vector<std::string> build_help(const std::string& log, const Description& description) {
  std::vector<std::string> help;
  for (const Kernel& kernel : description.kernels) {
    const std::string reference = fmt::format("undefined reference to `{}(", kernel.function.value);
    if (log.find(reference) == std::string::npos) continue;
    help.push_back(fmt::format(
        "`{}` is in [operators.kernels] (backend.toml:{}) and needs a definition of `{}` "
        "as kernels.h declares it",
        kernel.op.value, kernel.op.span.line, kernel.function.value));
  }
  return help;
}

int report_failed_build(const fs::path& log, const Description& description, Context& context) {
  const std::string text = context.disk.read(log).value_or("");
  std::vector<std::string> lines = lines_of(text);
  std::erase(lines, "");
  std::string tail = fmt::format("the last lines of {}:", shown(log, context));
  const std::size_t first = lines.size() - std::min(lines.size(), kShownLogLines);
  for (std::size_t i = first; i < lines.size(); ++i) tail += "\n  " + lines[i];
  Diagnostic problem;
  problem.message = "the build failed";
  problem.help = build_help(text, description);
  problem.notes = {tail};
  context.console.report(problem);
  return kNo;
}

/// Makes a folder and those above it; false, reported, when that fails.
bool make_folders(const fs::path& folder, Context& context) {
  if (context.disk.look(folder) == Entry::kFolder) return true;
  if (folder.has_relative_path() && !make_folders(folder.parent_path(), context)) return false;
  const auto made = context.disk.make_folder(folder);
  if (made) return true;
  context.refuse(fmt::format("cannot make the folder {}: {}", shown(folder, context), made.why()));
  return false;
}

/// The only wheel in a folder; empty when there is none or more than one.
fs::path wheel_in(const fs::path& folder, const Disk& disk) {
  fs::path found;
  for (const std::string& name : disk.list(folder)) {
    if (!name.ends_with(".whl")) continue;
    if (!found.empty()) return {};
    found = folder / name;
  }
  return found;
}

/// Runs the tool verify_wheel and shows what it says.
int verify(const std::string& python, const fs::path& wheel, const fs::path& project,
           const Analysis& analysis, bool smoke, Context& context) {
  const Description& description = analysis.description;
  const Outcome outcome = context.process.run(tool_command(
      python, "verify_wheel",
      {wheel.string(), description.name.value, description.package.value,
       analysis.torch->version.minor_text(), project.string(), smoke ? "smoke" : "no-smoke"},
      wheel.parent_path()));
  return show_tool(outcome, "the wheel could not be verified", context);
}

/// Runs the tool debug_symbols, which strips the wheel's libraries into `archive`.
int split_symbols(const std::string& python, const fs::path& wheel, const fs::path& archive,
                  const std::string& libraries, Context& context) {
  const Outcome outcome = context.process.run(tool_command(
      python, "debug_symbols", {wheel.string(), archive.string(), libraries}, wheel.parent_path()));
  return show_tool(outcome, "the debug symbols could not be split off", context);
}

/// Runs the tool repair, which replaces the wheel by one with another name.
int repair(const std::string& python, const fs::path& wheel, const Description& description,
           Context& context) {
  std::vector<std::string> words = {wheel.string()};
  const auto add = [&words](const char* option, const Text& value) {
    words.push_back(fmt::format("{}={}", option, value.value));
  };
  if (!description.platform.value.empty()) add("--platform", description.platform);
  for (const Text& pattern : description.bundle) add("--bundle", pattern);
  for (const Text& pattern : description.exclude) add("--exclude", pattern);
  const Outcome outcome =
      context.process.run(tool_command(python, "repair", words, wheel.parent_path()));
  return show_tool(outcome, "the wheel could not be repaired", context);
}

/// Puts the wheel where it is wanted, whole or not at all.
bool deliver(const fs::path& wheel, const fs::path& target, Context& context) {
  const fs::path beside = target.string() + ".new";
  const auto deliver_it = [&]() -> Result<void> {
    const auto bytes = context.disk.read(wheel);
    if (!bytes) return Failure{bytes.why()};
    if (auto written = context.disk.write(beside, *bytes); !written) return written;
    return context.disk.rename(beside, target);
  };
  const Result<void> delivered = deliver_it();
  if (delivered) return true;
  std::ignore = context.disk.remove(beside);
  context.refuse(fmt::format("cannot write {}: {}", shown(target, context), delivered.why()));
  return false;
}

std::string size_of(std::size_t bytes) {
  constexpr double kKib = 1024;
  return bytes < kKib * kKib ? fmt::format("{:.0f} KiB", static_cast<double>(bytes) / kKib)
                             : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kKib / kKib);
}

}  // namespace

int run_wheel(const WheelOptions& options, Context& context) {
  const auto started = std::chrono::steady_clock::now();
  const auto opened = open_description(options.description, context);
  if (!opened) return kNo;
  const std::string python = options.python.empty() ? default_python(context) : options.python;
  AnalyzeOptions how;
  how.python = python;
  const Analysis analysis = analyze(*opened, how, context);
  context.console.report(analysis.problems, opened->source);
  if (analysis.problems.has_errors()) return kNo;
  context.console.status("Checked", opened->source.path());
  const Description& description = analysis.description;

  const fs::path project = opened->folder;
  if (context.disk.look(project / "setup.py") != Entry::kFile) {
    return context.refuse(
        fmt::format("{} has no setup.py", shown(project, context)),
        fmt::format("to use only CMake, build the target `{}_wheel`", description.name.value));
  }
  const fs::path built = project / "build" / "wheel";
  const fs::path out = options.out.empty() ? project / "dist" : context.folder / options.out;
  if (!make_folders(built, context) || !make_folders(out, context)) return kNo;
  for (const std::string& name : context.disk.list(built)) {
    std::ignore = context.disk.remove(built / name);
  }

  context.console.status("Building",
                         fmt::format("{} {} for PyTorch {}", description.package.value,
                                     description.version.value, analysis.torch->version.text()));
  const fs::path log = project / "build" / "wheel.log";
  std::map<std::string, std::string> environment;
  if (options.debug_symbols) environment["BACKENDKIT_DEBUG_SYMBOLS"] = "1";
  const Outcome outcome =
      context.process.run({{python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
                            "--disable-pip-version-check", "--wheel-dir", built.string(), "."},
                           project,
                           environment,
                           log});
  if (!outcome.why.empty()) {
    return context.refuse(fmt::format("cannot run `{}`: {}", python, outcome.why),
                          "name a Python: `--python EXE`");
  }
  if (outcome.status != 0) return report_failed_build(log, description, context);
  fs::path wheel = wheel_in(built, context.disk);
  if (wheel.empty()) return context.refuse("the build left no wheel");
  const fs::path symbols = built / "symbols.zip";
  if (options.debug_symbols) {
    const std::string libraries =
        fmt::format("{}/lib/{}", description.package.value, analysis.torch->version.minor_text());
    if (split_symbols(python, wheel, symbols, libraries, context) != kDone) return kNo;
  }
  if (options.repair) {
    if (repair(python, wheel, description, context) != kDone) return kNo;
    wheel = wheel_in(built, context.disk);
  }

  if (verify(python, wheel, project, analysis, options.smoke, context) != kDone) return kNo;
  const fs::path target = out / wheel.filename();
  if (options.debug_symbols) {
    const fs::path archive = out / (wheel.stem().string() + ".debug.zip");
    if (!deliver(symbols, archive, context)) return kNo;
  }
  if (!deliver(wheel, target, context)) return kNo;
  const auto bytes = context.disk.read(target);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
  context.console.status("Finished",
                         fmt::format("{} ({}) in {:.0f} s", shown(target, context),
                                     size_of(bytes ? bytes->size() : 0), elapsed.count()));
  return kDone;
}

}  // namespace backendgen
