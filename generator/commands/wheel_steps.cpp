// SPDX-License-Identifier: Apache-2.0
#include "commands/wheel_steps.h"

#include <tuple>

#include <fmt/format.h>

#include "base/tool.h"
#include "commands/build_wheel.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

std::string size_of(std::size_t bytes) {
  constexpr double kKib = 1024;
  return bytes < kKib * kKib ? fmt::format("{:.0f} KiB", static_cast<double>(bytes) / kKib)
                             : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kKib / kKib);
}

}  // namespace

bool run_tool(const std::string& python, const std::string& module,
              const std::vector<std::string>& arguments, const fs::path& folder,
              const std::string& unexpected, Context& context) {
  const Outcome outcome = context.process.run(tool_command(python, module, arguments, folder));
  if (!outcome.why.empty()) {
    context.refuse(fmt::format("cannot run `{}`: {}", python, outcome.why),
                   "name a Python: `--python EXE`");
    return false;
  }
  return show_tool(outcome, unexpected, context) == kDone;
}

std::vector<std::string> repair_words(const fs::path& wheel, const Description& description,
                                      const std::string& runtime) {
  std::vector<std::string> words = {wheel.string()};
  const auto add = [&words](const char* option, const Text& value) {
    words.push_back(fmt::format("{}={}", option, value.value));
  };
  if (!description.platform.value.empty()) add("--platform", description.platform);
  for (const Text& pattern : description.bundle) add("--bundle", pattern);
  for (const Text& pattern : description.exclude) add("--exclude", pattern);
  if (!runtime.empty()) words.push_back("--runtime=" + runtime);
  return words;
}

bool deliver(const fs::path& file, const fs::path& target, Context& context) {
  const fs::path beside = target.string() + ".new";
  const auto deliver_it = [&]() -> Result<void> {
    const auto bytes = context.disk.read(file);
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

bool finish_wheel(const fs::path& wheel, const fs::path& folder,
                  std::chrono::steady_clock::time_point started, Context& context) {
  const fs::path target = folder / wheel.filename();
  if (!deliver(wheel, target, context)) return false;
  const auto bytes = context.disk.read(target);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
  context.console.status("Finished",
                         fmt::format("{} ({}) in {:.0f} s", shown(target, context),
                                     size_of(bytes ? bytes->size() : 0), elapsed.count()));
  return true;
}

}  // namespace backendgen
