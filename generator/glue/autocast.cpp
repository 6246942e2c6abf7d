// SPDX-License-Identifier: Apache-2.0
#include "glue/autocast.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "glue/check_operators.h"
#include "torch/autocast_lists.h"

namespace backendgen {
namespace {

/// Whether `dtyped` is `schema` with a dtype after its arguments, which it must be given.
bool takes_dtype_as_well(const Schema& schema, const Schema& dtyped) {
  const auto few = schema.arguments();
  const auto more = dtyped.arguments();
  if (more.size() != few.size() + 1 || !more.back().type.is(Atom::kScalarType)) return false;
  if (schema.keyword_only().size() + schema.out().size() != 0) return false;
  return std::equal(few.begin(), few.end(), more.begin(), [](const auto& one, const auto& other) {
    return one.name == other.name && one.type.atom == other.type.atom;
  });
}

bool has_optional_dtype(const Schema& schema) {
  const auto arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
    return argument.name == "dtype" && argument.type.text() == "ScalarType?";
  });
}

/// The overload of an operator without a dtype that takes one; empty when there is none.
std::string overload_with_dtype(const Schema& schema, const Catalog& catalog) {
  const OperatorName& name = schema.name();
  for (const std::string& other : catalog.overloads(name.base)) {
    const Operator* op = catalog.find(other);
    if (takes_dtype_as_well(schema, op->schema)) return op->schema.name().overload;
  }
  return {};
}

/// How many tensors a policy may look at or cast; a list counts as several.
std::size_t tensor_count(const Schema& schema) {
  std::size_t count = 0;
  for (const Argument& argument : schema.arguments()) {
    if (!argument.type.tensor_like()) continue;
    const auto& suffixes = argument.type.suffixes;
    const bool list = std::any_of(suffixes.begin(), suffixes.end(), [](const Suffix& suffix) {
      return suffix.kind == Suffix::kList;
    });
    count += list ? 2 : 1;
  }
  return count;
}

/// Why autocast cannot treat an operator by a policy; empty when it can.
Result<void> judge(const Schema& schema, CastPolicy policy, const Catalog& catalog) {
  const auto arguments = schema.arguments();
  for (const Argument& argument : arguments) {
    if (argument.write()) {
      return Failure{
          fmt::format("it writes to `{}`, and autocast would give it a copy", argument.name)};
    }
  }
  for (const Return& result : schema.returns()) {
    if (result.alias)
      return Failure{"its result is a view, and autocast would make it one of a copy"};
  }
  const std::size_t count = tensor_count(schema);
  if (count == 0) return Failure{"it takes no tensor"};
  if (policy == CastPolicy::kPromote && count == 1) return Failure{"it takes only one tensor"};
  if (policy != CastPolicy::kFp32SetOptDtype) return {};
  if (!arguments.front().type.is(Atom::kTensor)) return Failure{"its first argument is no tensor"};
  if (!has_optional_dtype(schema) && overload_with_dtype(schema, catalog).empty()) {
    return Failure{"it takes no `ScalarType? dtype`"};
  }
  return {};
}

}  // namespace

void check_autocast(const Description& description, const Catalog& catalog,
                    const TorchInstall& torch, Diagnostics& problems) {
  for (const auto& [policy, ops] : description.amp_lists) {
    for (const Text& text : ops) {
      const Operator* op = catalog.find(text.value);
      if (op == nullptr) {
        report_unknown_operator(text, false, catalog, torch, problems);
        continue;
      }
      const auto good = judge(op->schema, policy, catalog);
      if (good) continue;
      problems
          .error(
              fmt::format("`{}` cannot be in `{}`: {}", text.value, policy_key(policy), good.why()),
              text.span)
          .notes.push_back(fmt::format("its schema is `{}`", op->schema.text()));
    }
  }
}

std::vector<std::string_view> usual_autocast_operators(const Description& description) {
  std::vector<std::string_view> ops;
  if (description.amp_dtypes.empty()) return ops;
  for (const CastPolicy policy : kCastPolicies) {
    if (description.amp_lists.contains(policy)) continue;
    const auto usual = usual_autocast_list(policy);
    ops.insert(ops.end(), usual.begin(), usual.end());
  }
  return ops;
}

std::vector<AutocastOperator> model_autocast(const Description& description, const Catalog& catalog,
                                             const TorchVersion& release) {
  std::vector<AutocastOperator> operators;
  if (description.amp_dtypes.empty()) return operators;
  std::set<std::string, std::less<>> done;
  const auto add = [&](std::string_view name, CastPolicy policy) {
    const Operator* op = catalog.find(name);
    if (op == nullptr || !done.insert(std::string(name)).second) return;
    const bool appends = policy == CastPolicy::kFp32SetOptDtype && !has_optional_dtype(op->schema);
    operators.push_back(
        {std::string(name), policy, appends ? overload_with_dtype(op->schema, catalog) : ""});
  };
  for (const auto& [policy, ops] : description.amp_lists) {
    for (const Text& op : ops) add(op.value, policy);
  }
  for (const CastPolicy policy : kCastPolicies) {
    if (description.amp_lists.contains(policy)) continue;
    for (const std::string_view name : usual_autocast_list(policy)) {
      if (is_usual_in(name, release)) add(name, policy);
    }
  }
  return operators;
}

std::vector<Values> autocast_rows(const std::vector<AutocastOperator>& operators) {
  const auto enumerator = [](CastPolicy policy) {
    switch (policy) {
      case CastPolicy::kLowerPrecisionFp:
        return "kLowerPrecisionFp";
      case CastPolicy::kFp32:
        return "kFp32";
      case CastPolicy::kFp32SetOptDtype:
        return "kFp32SetOptDtype";
      case CastPolicy::kPromote:
        break;
    }
    return "kPromote";
  };
  std::vector<Values> rows;
  for (const AutocastOperator& one : operators) {
    rows.push_back(
        {{{"op", one.op}, {"policy", enumerator(one.policy)}, {"with_dtype", one.with_dtype}},
         {},
         {}});
  }
  return rows;
}

}  // namespace backendgen
