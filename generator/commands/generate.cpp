// SPDX-License-Identifier: Apache-2.0
#include "commands/generate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text_diff.h"
#include "description/load.h"
#include "glue/analyze.h"
#include "glue/writer.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

/// The plan of the glue; reports every problem of the description and of PyTorch together.
std::optional<Plan> make_plan(const OpenedDescription& opened, const GenerateOptions& options,
                              Context& context) {
  AnalyzeOptions how;
  how.torch = options.torch;
  how.warns = !options.list;  // CMake lists, then generates
  const Analysis analysis = analyze(opened, how, context);
  context.console.report(analysis.problems, opened.source);
  if (analysis.problems.has_errors()) return std::nullopt;
  return plan_glue(analysis.description, *analysis.torch, analysis.model);
}

int list(const Plan& plan, const std::string& out, Context& context) {
  std::string text;
  for (const PlannedFile& file : plan) {
    text += (fs::path(out) / file.path).lexically_normal().generic_string() + "\n";
  }
  context.console.data(text);
  return kDone;
}

/// `--check`: the first file that differs, with its difference.
int check(const Plan& plan, const std::vector<Comparison>& comparisons, const std::string& out,
          Context& context) {
  const std::string command = fmt::format("run `backendgen generate --out {}`", out);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& one = comparisons[i];
    if (one.state == State::kUnchanged) continue;
    const std::string path = (fs::path(out) / one.path).lexically_normal().generic_string();
    const bool planned = i < plan.size();
    const std::string what = !planned                       ? "is not generated any more"
                             : one.state == State::kMissing ? "is missing"
                                                            : "is out of date";
    context.console.error(fmt::format("{} {}", path, what));
    if (planned && one.state != State::kMissing) {
      context.console.data(
          unified_diff(one.current, plan[i].text, path, "generated from backend.toml"));
    }
    context.console.line("help: " + command);
    return kNo;
  }
  context.console.status("Checked", fmt::format("{} files in {}, up to date", plan.size(), out));
  return kDone;
}

int refuse_edited(const std::vector<Comparison>& comparisons, const std::string& out,
                  Context& context) {
  for (const Comparison& one : comparisons) {
    if (one.state != State::kEdited) continue;
    context.console.error(
        fmt::format("{} was edited after it was generated",
                    (fs::path(out) / one.path).lexically_normal().generic_string()),
        "move the edit to csrc/, or pass `--force`",
        "this file is generated; the edit would be lost");
  }
  return kNo;
}

/// A folder is generated into as a whole, so that surplus files can go from it: it holds nothing
/// else.
int refuse_foreign(const std::vector<std::string>& foreign, const std::string& out,
                   Context& context) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(foreign.size(), kShown);
  std::string names;
  for (std::size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + in_ticks(foreign[i]);
  if (shown < foreign.size()) names += fmt::format(" and {} more", foreign.size() - shown);
  context.console.error(
      fmt::format("{} has files that backendgen did not write: {}", in_ticks(out), names),
      "name a folder that is empty or new, such as `--out build/glue`");
  return kNo;
}

}  // namespace

int run_generate(const GenerateOptions& options, Context& context) {
  const auto opened = open_description(options.description, context);
  if (!opened) return kNo;
  const auto plan = make_plan(*opened, options, context);
  if (!plan) return kNo;
  if (options.list) return list(*plan, options.out, context);

  const fs::path folder = context.folder / options.out;
  Diagnostics problems;
  // Others that generate from the description at the same time come one after another.
  const auto lock = options.check ? nullptr : context.disk.lock(opened->folder);
  if (lock) remove_leftovers(*plan, folder, context.disk);
  const auto comparisons = compare(*plan, folder, context.disk, problems);
  if (comparisons) {
    const auto foreign = find_foreign(*comparisons, folder, context.disk);
    if (!foreign.empty()) return refuse_foreign(foreign, options.out, context);
  }
  if (comparisons && options.check) return check(*plan, *comparisons, options.out, context);
  if (comparisons) {
    const auto is = [](State state) {
      return [state](const Comparison& one) { return one.state == state; };
    };
    if (!options.force &&
        std::any_of(comparisons->begin(), comparisons->end(), is(State::kEdited))) {
      return refuse_edited(*comparisons, options.out, context);
    }
    if (write_generated(*plan, *comparisons, folder, context.disk, problems)) {
      const auto same =
          std::count_if(comparisons->begin(), comparisons->end(), is(State::kUnchanged));
      const auto fresh =
          std::count_if(comparisons->begin(), comparisons->end(), is(State::kMissing));
      const std::size_t changed = comparisons->size() - static_cast<std::size_t>(same + fresh);
      std::string tail;
      if (static_cast<std::size_t>(same) == comparisons->size()) {
        tail = ", none changed";
      } else if (static_cast<std::size_t>(fresh) != comparisons->size()) {
        tail = fmt::format(", {} changed", changed + static_cast<std::size_t>(fresh));
      }
      context.console.status("Generated",
                             fmt::format("{} files in {}{}", plan->size(), options.out, tail));
      return kDone;
    }
  }
  for (const Diagnostic& problem : problems.sorted()) context.console.report(problem);
  return kNo;
}

}  // namespace backendgen
