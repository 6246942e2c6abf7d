// SPDX-License-Identifier: Apache-2.0
#include "commands/check.h"

#include <fmt/format.h>

#include "autocast.h"
#include "catalog.h"
#include "check_header.h"
#include "check_operators.h"
#include "describe_json.h"
#include "load.h"
#include "read_description.h"
#include "torch_option.h"

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
  if (!json && !options.format.empty() && options.format != "text") {
    context.console.error("unknown format " + in_ticks(options.format),
                          "the formats are `text` and `json`");
    return kUsage;
  }
  const auto opened = open_description(options.description, context);
  if (!opened) return kNo;
  const Source& source = opened->source;
  Diagnostics problems;
  // Kernels are judged even when the rest has errors, so that one run shows all of them.
  const Description description = read_partial_description(source, problems);
  std::optional<TorchInstall> torch;
  const bool needs_torch =
      !description.kernels.empty() || !description.amp_lists.empty() || !options.torch.empty();
  if (needs_torch) torch = choose_torch(options.torch, context, problems);
  if (torch) {
    warn_if_newer(*torch, problems);
    if (!description.torch_requires.value.empty()) check_release(description, *torch, problems);
    if (const auto catalog = read_catalog_for(description, *torch, context.disk, problems)) {
      check_operators(description, *catalog, *torch, problems);
      check_autocast(description, *catalog, *torch, problems);
    }
  }
  if (!problems.has_errors()) {
    warn_if_no_header(description, opened->folder, context.disk, problems);
  }
  context.console.report(problems, source);
  if (problems.has_errors()) return kNo;
  if (json) {
    context.console.data(describe_json(description, torch));
    return kDone;
  }
  context.console.status("Checked", fmt::format("{}: {}", source.path(), summary(description)));
  return kDone;
}

}  // namespace backendgen
