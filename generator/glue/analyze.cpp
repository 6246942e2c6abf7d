// SPDX-License-Identifier: Apache-2.0
#include "glue/analyze.h"

#include <vector>

#include "description/check_header.h"
#include "description/read.h"
#include "glue/autocast.h"
#include "glue/check_operators.h"
#include "glue/kernel_model.h"
#include "glue/torch_option.h"

namespace backendgen {

namespace {

std::vector<std::string> operators_of(const Description& description) {
  std::vector<std::string> names;
  for (const Kernel& kernel : description.kernels) names.push_back(kernel.op.value);
  for (const auto& [policy, ops] : description.amp_lists) {
    for (const Text& op : ops) names.push_back(op.value);
  }
  return names;
}

}  // namespace

void analyze_operators(Analysis& analysis, const Disk& disk) {
  const Description& description = analysis.description;
  const TorchInstall& torch = *analysis.torch;
  Diagnostics& problems = analysis.problems;
  const std::vector<std::string> names = operators_of(description);
  if (names.empty() && description.amp_dtypes.empty()) return;
  const auto catalog =
      read_catalog_for(names, usual_autocast_operators(description), torch, disk, problems);
  if (!catalog) return;
  const auto signatures = check_operators(description, *catalog, torch, problems);
  check_autocast(description, *catalog, torch, problems);
  if (problems.has_errors()) return;
  analysis.model.kernels = model_kernels(description, signatures, *catalog);
  analysis.model.autocast = model_autocast(description, *catalog, torch.version);
}

Analysis analyze(const OpenedDescription& opened, const AnalyzeOptions& options, Context& context) {
  Analysis analysis;
  Diagnostics of_torch;
  const auto find_torch = [&] {
    analysis.torch = choose_torch(options.torch, options.python, context, of_torch);
  };
  if (options.needs_torch) find_torch();
  analysis.description = read_partial_description(opened.source, analysis.problems);
  const Description& description = analysis.description;
  const bool names_operators = !operators_of(description).empty();
  if (!options.needs_torch && (names_operators || !options.torch.empty())) find_torch();
  analysis.problems.add(of_torch);
  if (analysis.torch) {
    if (options.warns) warn_if_newer(*analysis.torch, analysis.problems);
    check_release(description, *analysis.torch, analysis.problems);
    analyze_operators(analysis, context.disk);
  }
  if (options.warns && !analysis.problems.has_errors()) {
    warn_if_no_header(description, opened.folder, context.disk, analysis.problems);
  }
  return analysis;
}

}  // namespace backendgen
