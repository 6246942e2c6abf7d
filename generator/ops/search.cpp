// SPDX-License-Identifier: Apache-2.0
#include "ops/search.h"

#include <algorithm>

#include "base/glob.h"
#include "base/suggest.h"

namespace backendgen {

std::string_view without_namespace(std::string_view pattern) {
  constexpr std::string_view kAten = "aten::";
  if (pattern.starts_with(kAten)) pattern.remove_prefix(kAten.size());
  return pattern;
}

namespace {

/// `softmax` of `_softmax`: what people call it.
std::string_view public_name(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

template <typename Wanted>
std::vector<OperatorStatus> filtered(const std::vector<OperatorStatus>& operators, Wanted wanted) {
  std::vector<OperatorStatus> found;
  for (const OperatorStatus& status : operators) {
    if (wanted(status.op->schema.name())) found.push_back(status);
  }
  return found;
}

}  // namespace

std::vector<OperatorStatus> find_operators(const std::vector<OperatorStatus>& operators,
                                           std::string_view typed) {
  const std::string_view pattern = without_namespace(typed);
  if (pattern.empty()) return operators;
  if (has_wildcard(pattern)) {
    return filtered(operators,
                    [&](const OperatorName& name) { return matches(pattern, name.text()); });
  }
  if (pattern.find('.') != std::string_view::npos) {
    auto found =
        filtered(operators, [&](const OperatorName& name) { return name.text() == pattern; });
    if (!found.empty()) return found;
  }
  auto found = filtered(operators, [&](const OperatorName& name) {
    const std::string root = name.root();
    return name.base == pattern || root == pattern || public_name(root) == pattern;
  });
  if (!found.empty()) return found;
  return filtered(operators, [&](const OperatorName& name) {
    return name.text().find(pattern) != std::string::npos;
  });
}

std::size_t count_containing(const std::vector<OperatorStatus>& operators,
                             std::string_view pattern) {
  return static_cast<std::size_t>(
      std::count_if(operators.begin(), operators.end(), [&](const OperatorStatus& status) {
        return status.op->schema.name().text().find(without_namespace(pattern)) !=
               std::string::npos;
      }));
}

std::optional<std::string> guess_pattern(const Catalog& catalog, std::string_view pattern) {
  std::vector<std::string> bases;
  std::vector<std::string> names;
  for (const Operator& op : catalog.operators()) {
    bases.push_back(op.schema.name().base);
    names.push_back(op.schema.name().text());
  }
  const std::string_view name = without_namespace(pattern);
  auto near = nearest(name, bases);
  return near ? near : nearest(name, names);
}

}  // namespace backendgen
