// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "torch/catalog.h"

namespace backendgen {

/// A group of operators that a person would look for.
struct OperatorGroup {
  std::string_view key;    // "matrix", for programs
  std::string_view title;  // "Matrix products"
  std::string_view names;  // which operators: names and wildcards, see `GroupIndex`
};

/// All groups, in the order in which they are shown; the last takes what no other one does.
std::span<const OperatorGroup> operator_groups();

/// Says which group an operator is in. The variants of an operator (in-place, out=, overloads) are
/// in one group: rules are about what they share, `OperatorName::root` without underscores around
/// it. The first group with a rule for it wins; operators that no rule names are elementwise when
/// PyTorch says that one of the variants is pointwise.
class GroupIndex {
 public:
  explicit GroupIndex(const Catalog& catalog);

  /// A place in `operator_groups()`.
  std::size_t group_of(const Operator& op) const;

 private:
  std::unordered_map<std::string, std::size_t> by_root_;
};

}  // namespace backendgen
