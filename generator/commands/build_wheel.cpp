// SPDX-License-Identifier: Apache-2.0
#include "commands/build_wheel.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownLogLines = 15;

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

void report_failed_build(const WheelBuild& build, const Description& description,
                         Context& context) {
  const std::string text = context.disk.read(build.log).value_or("");
  std::vector<std::string> lines = lines_of(text);
  std::erase(lines, "");
  std::string tail = fmt::format("the last lines of {}:", shown(build.log, context));
  const std::size_t first = lines.size() - std::min(lines.size(), kShownLogLines);
  for (std::size_t i = first; i < lines.size(); ++i) tail += "\n  " + lines[i];
  Diagnostic problem;
  problem.message = build.position.empty()
                        ? "the build failed"
                        : fmt::format("the build for PyTorch {} failed", build.torch.text());
  problem.help = build_help(text, description);
  problem.notes = {tail};
  context.console.report(problem);
}

}  // namespace

std::string shown(const fs::path& path, const Context& context) {
  const fs::path relative = path.lexically_relative(context.folder);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return (below ? relative : path).generic_string();
}

bool make_folders(const fs::path& folder, Context& context) {
  if (context.disk.look(folder) == Entry::kFolder) return true;
  if (folder.has_relative_path() && !make_folders(folder.parent_path(), context)) return false;
  const auto made = context.disk.make_folder(folder);
  if (made) return true;
  context.refuse(fmt::format("cannot make the folder {}: {}", shown(folder, context), made.why()));
  return false;
}

bool empty_folder(const fs::path& folder, Context& context) {
  if (!make_folders(folder, context)) return false;
  for (const std::string& name : context.disk.list(folder)) {
    std::ignore = context.disk.remove(folder / name);
  }
  return true;
}

fs::path wheel_in(const fs::path& folder, const Disk& disk) {
  fs::path found;
  for (const std::string& name : disk.list(folder)) {
    if (!name.ends_with(".whl")) continue;
    if (!found.empty()) return {};
    found = folder / name;
  }
  return found;
}

std::optional<BuiltWheel> build_wheel(const WheelBuild& build, const Description& description,
                                      Context& context) {
  if (!empty_folder(build.folder, context)) return std::nullopt;
  context.console.status(
      "Building",
      fmt::format("{} {} for PyTorch {}{}", description.package.value, description.version.value,
                  build.torch.text(), build.position.empty() ? "" : " (" + build.position + ")"));
  std::map<std::string, std::string> environment;
  if (build.debug_symbols) environment["BACKENDKIT_DEBUG_SYMBOLS"] = "1";
  const Outcome outcome = context.process.run(
      {{build.python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
        "--disable-pip-version-check", "--wheel-dir", build.folder.string(), "."},
       build.project,
       environment,
       build.log});
  if (!outcome.why.empty()) {
    context.refuse(fmt::format("cannot run `{}`: {}", build.python, outcome.why),
                   "name a Python: `--python EXE`");
    return std::nullopt;
  }
  if (outcome.status != 0) {
    report_failed_build(build, description, context);
    return std::nullopt;
  }
  const fs::path wheel = wheel_in(build.folder, context.disk);
  if (wheel.empty()) {
    context.refuse("the build left no wheel");
    return std::nullopt;
  }
  return BuiltWheel{wheel, build.python, build.torch};
}

std::optional<BuiltWheel> take_wheel(const WheelBuild& build, const fs::path& wheel,
                                     Context& context) {
  const auto refuse = [&](const std::string& why) {
    context.refuse(fmt::format("cannot take {}: {}", shown(wheel, context), why),
                   "name the wheel that the target `..._wheel` of CMake built");
    return std::nullopt;
  };
  if (wheel.extension() != ".whl") return refuse("it is not a wheel");
  const auto bytes = context.disk.read(wheel);
  if (!bytes) return refuse(bytes.why());
  if (!empty_folder(build.folder, context)) return std::nullopt;
  const fs::path copy = build.folder / wheel.filename();
  if (const auto written = context.disk.write(copy, *bytes); !written) {
    context.refuse(fmt::format("cannot write {}: {}", shown(copy, context), written.why()));
    return std::nullopt;
  }
  return BuiltWheel{copy, build.python, build.torch};
}

}  // namespace backendgen
