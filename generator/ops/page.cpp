// SPDX-License-Identifier: Apache-2.0
#include "ops/page.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "glue/template.h"
#include "ops/groups.h"

namespace backendgen {

namespace {

/// The text as HTML takes it between tags and in a value in double quotes.
std::string html(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  for (const char letter : text) {
    switch (letter) {
      case '&':
        quoted += "&amp;";
        break;
      case '<':
        quoted += "&lt;";
        break;
      case '>':
        quoted += "&gt;";
        break;
      case '"':
        quoted += "&quot;";
        break;
      default:
        quoted += letter;
    }
  }
  return quoted;
}

/// 3101 → "3,101"
std::string with_commas(std::size_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::size_t of(const StateCounts& counts, OperatorState state) {
  return counts[static_cast<std::size_t>(state)];
}

std::size_t sum(const StateCounts& counts) {
  std::size_t total = 0;
  for (const std::size_t count : counts) total += count;
  return total;
}

std::string percent(std::size_t part, std::size_t whole) {
  return fmt::format("{:.2f}", whole == 0 ? 0.0 : 100.0 * double(part) / double(whole));
}

/// The pieces of a bar.
std::vector<Values> bar(const StateCounts& counts) {
  std::vector<Values> pieces;
  for (const OperatorState state : operator_states()) {
    if (of(counts, state) == 0) continue;
    pieces.push_back({{{"state", std::string(state_name(state))},
                       {"percent", percent(of(counts, state), sum(counts))}},
                      {},
                      {}});
  }
  return pieces;
}

std::string meaning(OperatorState state) {
  switch (state) {
    case OperatorState::kKernel:
      return "a kernel of yours computes it";
    case OperatorState::kFree:
      return "made of other operators: nothing to write";
    case OperatorState::kBuiltIn:
      return "BackendKit implements it";
    case OperatorState::kFallback:
      return "computed on the CPU until it has a kernel";
    case OperatorState::kError:
      return "raises an error until it has a kernel: the description has no fallback";
    case OperatorState::kCannot:
      return "PyTorch has it only for other devices";
  }
  return {};
}

/// How many kernels are written of those that there could be. Operators that follow from another
/// one count on neither side, so that a group's second number stays as it is while kernels are
/// written.
struct Progress {
  std::size_t written = 0;
  std::size_t wanted = 0;
};

Progress progress_of(const std::vector<OperatorStatus>& operators) {
  Progress progress;
  for (const OperatorStatus& status : operators) {
    if (!status.through.empty()) continue;
    const bool written = status.state == OperatorState::kKernel;
    if (written) ++progress.written;
    if (written || status.state == OperatorState::kFallback ||
        status.state == OperatorState::kError) {
      ++progress.wanted;
    }
  }
  return progress;
}

std::string anchor(const std::string& name) {
  return "op-" + name;
}

Values row(const OperatorStatus& status) {
  const std::string name = status.op->schema.name().text();
  const std::string schema = status.op->schema.text();
  return {{{"state", std::string(state_name(status.state))},
           {"anchor", html(anchor(name))},
           {"name", html(name)},
           {"core", status.op->core ? "<em>core</em>" : ""},
           {"schema", html(std::string_view(schema).substr(name.size()))},
           {"reason", html(status.reason())}},
          {},
          {}};
}

/// What to write first: the operators of PyTorch's core set that have no kernel yet. The kernel of
/// a structured operator is that of its out= variant.
void add_next(const OperatorReport& report, Values& values) {
  std::unordered_map<std::string, OperatorState> states;
  for (const OperatorStatus& status : report.operators) {
    states.emplace(status.op->schema.name().text(), status.state);
  }
  std::unordered_set<std::string> seen;
  std::size_t kernels = 0;
  auto& next = values.lists["next"];
  for (const OperatorStatus& status : report.operators) {
    if (!status.op->core) continue;
    const std::string& delegate = status.op->delegate;
    const std::string name = status.state == OperatorState::kKernel || delegate.empty()
                                 ? status.op->schema.name().text()
                                 : delegate;
    const auto found = states.find(name);
    if (found == states.end() || !seen.insert(name).second) continue;
    if (found->second == OperatorState::kKernel) ++kernels;
    if (found->second != OperatorState::kFallback && found->second != OperatorState::kError)
      continue;
    next.push_back({{{"anchor", html(anchor(name))}, {"name", html(name)}}, {}, {}});
  }
  const std::size_t all = kernels + next.size();
  values.sections["has_next"] = !next.empty();
  values.texts.add("next_title", fmt::format("{} core operator{} without a kernel", next.size(),
                                             next.size() == 1 ? "" : "s"));
  values.texts.add("next_bar_text", fmt::format("{} of {} have a kernel", kernels, all));
  values.texts.add("next_percent", percent(kernels, all));
  values.texts.add("next_numbers", fmt::format("{} of {} written", kernels, all));
  values.texts.add(
      "next_text",
      "Models that torch.export makes consist of PyTorch's core operators. Each of these needs a "
      "kernel of its own; the other core operators have one, or are made of these.");
}

}  // namespace

std::string operators_page(const OperatorReport& report) {
  const GroupIndex index(*report.catalog);
  const auto groups = operator_groups();
  std::vector<std::vector<OperatorStatus>> members(groups.size());
  for (const OperatorStatus& status : report.operators) {
    members[index.group_of(*status.op)].push_back(status);
  }
  const Description* description = report.description;
  const std::string device = description == nullptr ? "" : description->name.value;
  const StateCounts counts = count_states(report.operators);
  Values values;
  values.texts = {
      {"title", html(fmt::format("PyTorch {} operators{}", report.torch.text(),
                                 device.empty() ? "" : " on " + device))},
      {"lead", html(fmt::format("What happens when one of {} operators is called on {}.",
                                with_commas(report.operators.size()),
                                device.empty() ? "a device without kernels" : device))},
      {"total_text", counts_text(counts)},
      {"footer", "Made by backendgen " BACKENDGEN_VERSION "."},
  };
  values.lists["total_bar"] = bar(counts);
  for (const OperatorState state : operator_states()) {
    if (of(counts, state) == 0) continue;
    values.lists["states"].push_back({{{"state", std::string(state_name(state))},
                                       {"count", with_commas(of(counts, state))},
                                       {"meaning", meaning(state)}},
                                      {},
                                      {}});
  }
  add_next(report, values);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (members[i].empty()) continue;
    const StateCounts its = count_states(members[i]);
    const Progress progress = progress_of(members[i]);
    Values group;
    group.texts = {
        {"key", std::string(groups[i].key)},
        {"title", std::string(groups[i].title)},
        {"text", counts_text(its)},
        {"numbers", progress.wanted == 0
                        ? "nothing to write"
                        : fmt::format("{} of {} written", progress.written, progress.wanted)}};
    group.lists["bar"] = bar(its);
    auto& rows = group.lists["rows"];
    for (const OperatorStatus& status : members[i]) rows.push_back(row(status));
    values.lists["groups"].push_back(std::move(group));
  }
  return fill(find_template("ops/report.html"), values);
}

}  // namespace backendgen
