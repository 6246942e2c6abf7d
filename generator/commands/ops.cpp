// SPDX-License-Identifier: Apache-2.0
#include "commands/ops.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "description/load.h"
#include "glue/check_operators.h"
#include "glue/kernel_stub.h"
#include "glue/torch_option.h"
#include "ops/changes.h"
#include "ops/listing.h"
#include "ops/page.h"
#include "ops/search.h"
#include "torch/search.h"

namespace backendgen {
namespace {

/// What a look-up is about.
struct Subject {
  std::optional<Loaded> project;
  TorchInstall torch;
  Catalog catalog;

  const Description* description() const { return project ? &project->description : nullptr; }
};

/// Whether the options go together.
bool judge_options(const OpsOptions& options, Context& context) {
  const std::string& format = options.format;
  if (!options.stub.empty()) {
    for (const auto& [given, name] : {std::pair{!options.pattern.empty(), "a pattern"},
                                      {options.schema, "`--schema`"},
                                      {options.kernels, "`--kernels`"},
                                      {!format.empty(), "`--format`"},
                                      {!options.since.empty(), "`--since`"}}) {
      if (!given) continue;
      context.refuse(fmt::format("`--stub` does not go with {}", name),
                     "`backendgen ops --stub add.out,mm.out` begins two kernels");
      return false;
    }
  }
  if (!options.since.empty() && (options.schema || format == "html")) {
    context.refuse(fmt::format("`--since` does not go with `{}`",
                               options.schema ? "--schema" : "--format html"),
                   "changes are printed with their schemas, as text or with `--format json`");
    return false;
  }
  if (options.schema && !format.empty() && format != "text") {
    context.refuse(fmt::format("`--schema` does not go with `--format {}`", format),
                   "that format has the schemas anyway");
    return false;
  }
  return true;
}

/// Reports what is wrong with a PyTorch or a description; false when something is.
bool report(const Diagnostics& problems, const Subject* subject, Context& context) {
  for (const Diagnostic& problem : problems.sorted()) {
    const bool placed = problem.span.known() && subject != nullptr && subject->project;
    context.console.report(problem, placed ? &subject->project->source : nullptr);
  }
  return !problems.has_errors();
}

std::optional<Subject> open_subject(const OpsOptions& options, Context& context) {
  std::optional<Loaded> project;
  if (has_description(context)) {
    project = load("", context);
    if (!project) return std::nullopt;
  } else if (options.kernels) {
    context.refuse(
        fmt::format("no backend.toml in {} or above it", context.folder.generic_string()),
        "`--kernels` is about a description; `backendgen new PATH` starts a project");
    return std::nullopt;
  }
  Diagnostics problems;
  auto torch = choose_torch(options.torch, "", context, problems);
  std::optional<Catalog> catalog;
  if (torch) catalog = read_catalog(*torch, context.disk, problems);
  if (!report(problems, nullptr, context)) return std::nullopt;
  return Subject{std::move(project), std::move(*torch), std::move(*catalog)};
}

int refuse_pattern(const std::string& pattern, const Subject& subject, Context& context) {
  const auto near = guess_pattern(subject.catalog, pattern);
  context.console.error(fmt::format("no operator matches {} in PyTorch {}", in_ticks(pattern),
                                    subject.torch.version.minor_text()),
                        near ? fmt::format("did you mean `{}`?", *near)
                             : "`*` stands for any letters: `backendgen ops '*norm*'`");
  return kNo;
}

int list(const OpsOptions& options, const Subject& subject, Context& context) {
  const Description* description = subject.description();
  const auto all = judge_operators(subject.catalog, description);
  auto found = find_operators(all, options.pattern);
  if (found.empty()) return refuse_pattern(options.pattern, subject, context);
  const std::size_t matching = found.size();
  if (options.kernels) {
    std::erase_if(
        found, [](const OperatorStatus& status) { return status.state != OperatorState::kKernel; });
  }
  const OperatorReport shown = {&subject.catalog, subject.torch.version, description,
                                std::move(found)};
  if (options.format == "json") {
    context.console.data(operators_json(shown));
  } else if (options.format == "html") {
    context.console.data(operators_page(shown));
  } else {
    context.console.data(options.schema ? schemas_text(shown.operators)
                                        : operators_text(shown.operators));
  }
  const std::size_t count = shown.operators.size();
  context.console.status(
      "Listed", fmt::format("{} operator{} of PyTorch {}{}{}{}", count, count == 1 ? "" : "s",
                            subject.torch.version.text(),
                            description == nullptr ? "" : " for " + description->name.value,
                            count == 0 ? "" : ": ", counts_text(count_states(shown.operators))));
  const std::size_t containing = count_containing(all, options.pattern);
  if (!options.pattern.empty() && containing > matching) {
    context.console.line(fmt::format("note: {} more have it in their name: `backendgen ops '*{}*'`",
                                     containing - matching, without_namespace(options.pattern)));
  }
  return kDone;
}

int compare(const OpsOptions& options, const Subject& subject, Context& context) {
  Diagnostics problems;
  const auto torch = search_torch(options.since, "since", &subject.torch, context, problems);
  std::optional<Catalog> before;
  if (torch) before = read_catalog(*torch, context.disk, problems);
  if (!report(problems, nullptr, context)) return kNo;
  const Description* description = subject.description();
  auto changes = compare_catalogs(*before, subject.catalog, description);
  if (!options.pattern.empty()) {
    std::unordered_set<std::string> names;
    for (const Catalog* catalog : {&std::as_const(*before), &subject.catalog}) {
      const auto all = judge_operators(*catalog, nullptr);
      for (const OperatorStatus& status : find_operators(all, options.pattern)) {
        names.insert(status.op->schema.name().text());
      }
    }
    if (names.empty()) return refuse_pattern(options.pattern, subject, context);
    std::erase_if(changes,
                  [&](const OperatorChange& change) { return !names.contains(change.name); });
  }
  if (options.kernels) {
    std::erase_if(changes, [](const OperatorChange& change) { return change.kernel.empty(); });
  }
  const Releases releases = {torch->version, subject.torch.version};
  context.console.data(options.format == "json" ? changes_json(changes, releases)
                                                : changes_text(changes));
  context.console.status("Compared", fmt::format("PyTorch {} with {}: {}", releases.before.text(),
                                                 releases.after.text(), changes_summary(changes)));
  return kDone;
}

int begin_kernels(const OpsOptions& options, const Subject& subject, Context& context) {
  Diagnostics problems;
  const auto text =
      kernel_stubs(options.stub, subject.description(), subject.catalog, subject.torch, problems);
  report(problems, &subject, context);
  if (!text) return kNo;
  context.console.data(*text);
  return kDone;
}

}  // namespace

int run_ops(const OpsOptions& options, Context& context) {
  if (!judge_options(options, context)) return kUsage;
  const auto subject = open_subject(options, context);
  if (!subject) return kNo;
  if (!options.stub.empty()) return begin_kernels(options, *subject, context);
  if (!options.since.empty()) return compare(options, *subject, context);
  if (subject->project) {
    Diagnostics problems;
    check_operators(subject->project->description, subject->catalog, subject->torch, problems);
    if (problems.has_errors()) {
      report(problems, &*subject, context);
      return kNo;
    }
  }
  return list(options, *subject, context);
}

}  // namespace backendgen
