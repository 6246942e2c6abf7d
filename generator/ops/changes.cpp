// SPDX-License-Identifier: Apache-2.0
#include "ops/changes.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "ops/listing.h"
#include "ops/states.h"

namespace backendgen {

namespace {

std::string_view kind_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kRemoved:
      return "removed";
    case ChangeKind::kChanged:
      return "changed";
  }
  return {};
}

/// The description's functions by the operators that they implement.
std::map<std::string, std::string> kernels_of(const Catalog& catalog,
                                              const Description* description) {
  std::map<std::string, std::string> kernels;
  if (description == nullptr) return kernels;
  for (const OperatorStatus& status : judge_operators(catalog, description)) {
    if (status.state != OperatorState::kKernel) continue;
    kernels.emplace(status.op->schema.name().text(), status.function);
  }
  return kernels;
}

}  // namespace

std::vector<OperatorChange> compare_catalogs(const Catalog& before, const Catalog& after,
                                             const Description* description) {
  const auto kernels_before = kernels_of(before, description);
  auto kernels = kernels_of(after, description);
  // Only the older catalog has the kernels of operators that were removed.
  kernels.insert(kernels_before.begin(), kernels_before.end());
  const auto kernel_of = [&](const std::string& name) {
    const auto found = kernels.find(name);
    return found == kernels.end() ? std::string() : found->second;
  };
  std::vector<OperatorChange> changes;
  for (const Operator& op : after.operators()) {
    const std::string name = op.schema.name().text();
    const Operator* old = before.find(name);
    if (old == nullptr) {
      changes.push_back({ChangeKind::kAdded, name, "", op.schema.text(), "", cpp_declaration(op),
                         kernel_of(name)});
      continue;
    }
    OperatorChange change{ChangeKind::kChanged,  name,
                          old->schema.text(),    op.schema.text(),
                          cpp_declaration(*old), cpp_declaration(op),
                          kernel_of(name)};
    // A C++ declaration can change without its schema, so both are compared.
    const bool same = change.before == change.after && change.cpp_before == change.cpp_after;
    if (!same) changes.push_back(std::move(change));
  }
  for (const Operator& op : before.operators()) {
    const std::string name = op.schema.name().text();
    if (after.find(name) != nullptr) continue;
    changes.push_back({ChangeKind::kRemoved, name, op.schema.text(), "", cpp_declaration(op), "",
                       kernel_of(name)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const OperatorChange& a, const OperatorChange& b) { return a.name < b.name; });
  return changes;
}

std::string changes_text(const std::vector<OperatorChange>& changes) {
  std::string text;
  const auto line = [&text](std::string_view head, std::string_view rest) {
    text += fmt::format("{:<8}  {}\n", head, rest);
  };
  for (const OperatorChange& change : changes) {
    if (change.kind != ChangeKind::kChanged) {
      line(kind_name(change.kind),
           change.kind == ChangeKind::kAdded ? change.after : change.before);
    } else {
      const bool schema = change.before != change.after;
      line("changed", change.name);
      line("", "- " + (schema ? change.before : change.cpp_before));
      line("", "+ " + (schema ? change.after : change.cpp_after));
    }
    if (!change.kernel.empty()) line("", fmt::format("your kernel: {}", change.kernel));
  }
  return text;
}

std::string changes_json(const std::vector<OperatorChange>& changes, const Releases& releases) {
  std::vector<std::string> lines;
  const auto value = [](const std::string& text) { return text.empty() ? "null" : quote(text); };
  for (const OperatorChange& change : changes) {
    lines.push_back(fmt::format(
        "    {{\"name\": {}, \"change\": \"{}\", \"before\": {}, \"after\": {}, "
        "\"cpp_before\": {}, \"cpp_after\": {}, \"kernel\": {}}}",
        quote(change.name), kind_name(change.kind), value(change.before), value(change.after),
        value(change.cpp_before), value(change.cpp_after), value(change.kernel)));
  }
  return fmt::format(
      "{{\n  \"format\": 1,\n  \"before\": {},\n  \"after\": {},\n  \"changes\": [{}{}{}]\n}}\n",
      quote(releases.before.text()), quote(releases.after.text()), lines.empty() ? "" : "\n",
      fmt::join(lines, ",\n"), lines.empty() ? "" : "\n  ");
}

std::string changes_summary(const std::vector<OperatorChange>& changes) {
  const auto count = [&](auto wanted) {
    return std::count_if(changes.begin(), changes.end(), wanted);
  };
  const auto of = [&](ChangeKind kind) {
    return count([kind](const OperatorChange& change) { return change.kind == kind; });
  };
  const auto kernels = count([](const OperatorChange& change) { return !change.kernel.empty(); });
  std::string text = fmt::format("{} added, {} removed, {} changed", of(ChangeKind::kAdded),
                                 of(ChangeKind::kRemoved), of(ChangeKind::kChanged));
  if (kernels != 0) {
    text += fmt::format("; {} {} kernel of yours", kernels, kernels == 1 ? "has a" : "have a");
  }
  return text;
}

}  // namespace backendgen
