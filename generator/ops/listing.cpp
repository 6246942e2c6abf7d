// SPDX-License-Identifier: Apache-2.0
#include "ops/listing.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "glue/kernel_group.h"
#include "ops/groups.h"

namespace backendgen {

namespace {

/// `"kernel": 3, "free": 12, …`: every state, so that programs need not ask whether one is there.
std::string counts_json(const StateCounts& counts) {
  std::vector<std::string> members;
  for (const OperatorState state : operator_states()) {
    members.push_back(
        fmt::format("{}: {}", quote(state_name(state)), counts[static_cast<std::size_t>(state)]));
  }
  return fmt::format("{}", fmt::join(members, ", "));
}

std::string_view boolean(bool value) {
  return value ? "true" : "false";
}

std::string or_null(const std::string& text) {
  return text.empty() ? "null" : quote(text);
}

std::string operator_json(const OperatorStatus& status, std::string_view group) {
  const Operator& op = *status.op;
  return fmt::format(
      "    {{\"name\": {}, \"state\": {}, \"kernel\": {}, \"through\": {}, \"reason\": {}, "
      "\"group\": {}, \"core\": {}, "
      "\"structured\": {}, \"derived\": {}, \"schema\": {}, \"cpp\": {}}}",
      quote(op.schema.name().text()), quote(state_name(status.state)), or_null(status.function),
      or_null(status.through), quote(status.reason()), quote(group), boolean(op.core),
      boolean(op.structured), boolean(op.derived), quote("aten::" + op.schema.text()),
      quote(cpp_declaration(op)));
}

}  // namespace

std::string cpp_declaration(const Operator& op) {
  const auto signature = kernel_signature(op);
  if (!signature) return {};
  const OperatorName& name = op.schema.name();
  const std::string function = name.overload.empty() ? name.base : name.base + '_' + name.overload;
  return fmt::format("{} {}({});", signature->return_type, function, signature->declaration());
}

std::string operators_text(const std::vector<OperatorStatus>& operators) {
  std::size_t widest = 0;
  for (const OperatorStatus& status : operators) {
    if (status.reason().empty()) continue;
    widest = std::max(widest, status.op->schema.name().text().size());
  }
  std::string text;
  for (const OperatorStatus& status : operators) {
    const std::string name = status.op->schema.name().text();
    const std::string reason = status.reason();
    text += reason.empty() ? fmt::format("{:<8}  {}\n", state_name(status.state), name)
                           : fmt::format("{:<8}  {:<{}}  {}\n", state_name(status.state), name,
                                         widest, reason);
  }
  return text;
}

std::string schemas_text(const std::vector<OperatorStatus>& operators) {
  std::string text;
  for (const OperatorStatus& status : operators) {
    if (!text.empty()) text += '\n';
    text += fmt::format("aten::{}\n", status.op->schema.text());
    const std::string declaration = cpp_declaration(*status.op);
    if (!declaration.empty()) text += declaration + '\n';
  }
  return text;
}

std::string operators_json(const OperatorReport& report) {
  const GroupIndex index(*report.catalog);
  const auto groups = operator_groups();
  std::vector<StateCounts> counts(groups.size());
  std::vector<std::string> lines;
  lines.reserve(report.operators.size());
  for (const OperatorStatus& status : report.operators) {
    const std::size_t group = index.group_of(*status.op);
    ++counts[group][static_cast<std::size_t>(status.state)];
    lines.push_back(operator_json(status, groups[group].key));
  }
  std::vector<std::string> totals;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    totals.push_back(fmt::format("    {{\"group\": {}, \"title\": {}, {}}}", quote(groups[i].key),
                                 quote(groups[i].title), counts_json(counts[i])));
  }
  const Description* description = report.description;
  const bool error = description != nullptr && description->fallback == Fallback::kError;
  return fmt::format(
      "{{\n  \"format\": 1,\n  \"torch\": {},\n  \"device\": {},\n  \"fallback\": \"{}\",\n"
      "  \"states\": {{{}}},\n  \"groups\": [\n{}\n  ],\n  \"operators\": [\n{}\n  ]\n}}\n",
      quote(report.torch.text()), description == nullptr ? "null" : quote(description->name.value),
      error ? "error" : "cpu", counts_json(count_states(report.operators)),
      fmt::join(totals, ",\n"), fmt::join(lines, ",\n"));
}

}  // namespace backendgen
