// SPDX-License-Identifier: Apache-2.0
#include "commands/check.h"

#include <fmt/format.h>

#include "description/describe_json.h"
#include "description/load.h"
#include "description/runtime_libraries.h"
#include "glue/analyze.h"

namespace backendgen {
namespace {

std::string summary(const Description& description) {
  const std::size_t count = description.kernels.size();
  const std::size_t own = description.custom.size();
  const bool cpu = description.fallback == Fallback::kCpu;
  const std::string custom =
      own == 0 ? "" : fmt::format(", {} custom operator{}", own, own == 1 ? "" : "s");
  if (count == 0) {
    return fmt::format("{}{}, no kernels, {}", description.name.value, custom,
                       cpu ? "all operators fall back to cpu" : "no operator falls back");
  }
  return fmt::format("{}{}, {} kernel{}, the rest {}", description.name.value, custom, count,
                     count == 1 ? "" : "s", cpu ? "falls back to cpu" : "raises an error");
}

}  // namespace

int run_check(const CheckOptions& options, Context& context) {
  const bool json = options.format == "json";
  const auto opened = open_description(options.description, context);
  if (!opened) return kNo;
  AnalyzeOptions how;
  how.torch = options.torch;
  how.needs_torch = false;
  Analysis analysis = analyze(*opened, how, context);
  if (!json) {  // a build needs these files only once the driver's package is built
    find_runtime_libraries(analysis.description, opened->folder, context.disk, analysis.problems);
    find_runtime_licenses(analysis.description, opened->folder, context.disk, analysis.problems);
  }
  context.console.report(analysis.problems, opened->source);
  if (analysis.problems.has_errors()) return kNo;
  if (json) {
    context.console.data(describe_json(analysis.description, analysis.torch));
    return kDone;
  }
  context.console.status(
      "Checked", fmt::format("{}: {}", opened->source.path(), summary(analysis.description)));
  return kDone;
}

}  // namespace backendgen
