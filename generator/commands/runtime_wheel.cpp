// SPDX-License-Identifier: Apache-2.0
#include "commands/runtime_wheel.h"

#include <chrono>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "commands/build_wheel.h"
#include "commands/wheel_steps.h"
#include "description/read.h"
#include "description/runtime_libraries.h"
#include "glue/torch_option.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// Refuses an option that is about the backend's own wheel.
bool options_fit(const WheelOptions& options, Context& context) {
  const struct {
    const char* name;
    bool given;
  } others[] = {{"--from", !options.from.empty()},
                {"--torch", !options.torch.empty()},
                {"--with-pip", options.with_pip},
                {"--local-version", options.local_version},
                {"--debug-symbols", options.debug_symbols}};
  for (const auto& other : others) {
    if (!other.given) continue;
    context.refuse(fmt::format("`{}` does not go with `--runtime`", other.name),
                   "build the two wheels one after the other");
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> runtime_facts(const OpenedDescription& opened,
                                         const Description& description, Context& context) {
  if (description.runtime_package.value.empty()) return "";
  Diagnostics problems;
  const auto files = find_runtime_libraries(description, opened.folder, context.disk, problems);
  const auto licenses = find_runtime_licenses(description, opened.folder, context.disk, problems);
  context.console.report(problems, opened.source);
  if (problems.has_errors()) return std::nullopt;
  std::vector<std::string> members;
  const auto add = [&](const char* key, const std::string& value) {
    members.push_back(fmt::format("\"{}\": {}", key, quote(value)));
  };
  add("name", description.runtime_package.value);
  add("version", description.runtime_version.value);
  add("backend", description.package.value);
  add("device", description.display_name.value);
  add("folder", opened.folder.string());
  add("backendkit", BACKENDGEN_VERSION);
  add("license", description.runtime_license.value);
  const auto add_list = [&](const char* key, std::vector<std::string> values) {
    for (std::string& value : values) value = quote(value);
    members.push_back(fmt::format("\"{}\": [{}]", key, fmt::join(values, ", ")));
  };
  add_list("libraries", files);
  add_list("license_files", licenses);
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

int run_runtime_wheel(const WheelOptions& options, Context& context) {
  const auto started = std::chrono::steady_clock::now();
  if (!options_fit(options, context)) return kUsage;
  const auto loaded = load(options.description, context);
  if (!loaded) return kNo;
  const Description& description = loaded->description;
  if (description.runtime_package.value.empty()) {
    return context.refuse(fmt::format("{} has no [wheel.runtime]", loaded->source.path()),
                          "add `[wheel.runtime]`, and `version` and `libraries` below it",
                          "it says which libraries the wheel is made of");
  }
  const auto facts = runtime_facts({loaded->source, loaded->folder}, description, context);
  if (!facts) return kNo;
  context.console.status("Checked", loaded->source.path());
  const fs::path folder = loaded->folder / "build" / "wheel" / "runtime";
  if (!empty_folder(folder, context)) return kNo;
  context.console.status("Building", fmt::format("{} {}", description.runtime_package.value,
                                                 description.runtime_version.value));
  const std::string python = options.python.empty() ? default_python(context) : options.python;
  if (!run_tool(python, "runtime_wheel",
                {*facts, folder.string(), options.smoke ? "smoke" : "no-smoke"}, folder,
                "the wheel could not be built", context)) {
    return kNo;
  }
  if (options.repair &&
      !run_tool(python, "repair", repair_words(wheel_in(folder, context.disk), description, *facts),
                folder, "the wheel could not be repaired", context)) {
    return kNo;
  }
  const fs::path out = options.out.empty() ? loaded->folder / "dist" : context.folder / options.out;
  if (!make_folders(out, context)) return kNo;
  return finish_wheel(wheel_in(folder, context.disk), out, started, context) ? kDone : kNo;
}

}  // namespace backendgen
