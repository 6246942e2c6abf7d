// SPDX-License-Identifier: Apache-2.0
#include "description/read_amp.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "description/keys.h"

namespace backendgen {
namespace {

/// Reports an operator that an earlier list has as well: autocast can treat it in one way only.
bool is_in_another(const Text& op, const char* key, const Description& description,
                   Diagnostics& problems) {
  for (const auto& [policy, ops] : description.amp_lists) {
    const auto first = std::find_if(ops.begin(), ops.end(),
                                    [&](const Text& other) { return other.value == op.value; });
    if (first == ops.end()) continue;
    // The later one in the file is the surplus one.
    const bool later = first->span < op.span;
    const char* const other = policy_key(policy);
    Diagnostic& problem = problems.error(fmt::format("`{}` is in `{}` and in `{}`", op.value,
                                                     later ? other : key, later ? key : other),
                                         later ? op.span : first->span);
    problem.earlier = Label{later ? first->span : op.span, "first listed here"};
    return true;
  }
  return false;
}

}  // namespace

void read_amp(const Value* amp, ValueReader& reader, Diagnostics& problems, Description& result) {
  reader.read(amp, keys_of("amp"), result);
  const Member* first = nullptr;
  for (const CastPolicy policy : kCastPolicies) {
    const char* const key = policy_key(policy);
    const Member* member = find(amp, key);
    if (member == nullptr) continue;
    if (first == nullptr || member->span < first->span) first = member;
    std::vector<Text> ops = reader.texts(*member, *key_of("amp", key).rule);
    std::erase_if(ops, [&](const Text& op) { return is_in_another(op, key, result, problems); });
    result.amp_lists[policy] = std::move(ops);
  }
  const Member* dtypes = find(amp, "dtypes");
  const bool none = dtypes == nullptr ||
                    (dtypes->value.kind == Value::Kind::kList && dtypes->value.items.empty());
  if (first == nullptr || !none) return;
  problems
      .warning(fmt::format("`{}` has no effect: [amp] has no `dtypes`", first->key), first->span)
      .help.push_back("add a line such as `dtypes = [\"float16\"]`");
}

}  // namespace backendgen
