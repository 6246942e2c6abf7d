// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/states.h"
#include "torch/catalog.h"

namespace backendgen {

/// The operators that a person means by a pattern. The first of these that finds some decides:
/// everything for an empty pattern; for one with `*` or `?`, the names that it matches whole; the
/// operator of this name; all variants of a function, `add.Tensor`, `add_.Tensor` and `add.out` for
/// `add`, `_softmax` too for `softmax`; the names that have it in them. `aten::` in front is
/// allowed. Letters count as they are.
std::vector<OperatorStatus> find_operators(const std::vector<OperatorStatus>& operators,
                                           std::string_view pattern);

/// The pattern without `aten::` in front.
std::string_view without_namespace(std::string_view pattern);

/// How many operators have the pattern in their name.
std::size_t count_containing(const std::vector<OperatorStatus>& operators,
                             std::string_view pattern);

/// A name that was likely meant by a pattern that finds nothing.
std::optional<std::string> guess_pattern(const Catalog& catalog, std::string_view pattern);

}  // namespace backendgen
