// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "torch/schema.h"

namespace backendgen {

/// The rules by which torchgen derives the operators of `autogen` entries from an operator that is
/// written down; PyTorch registers them like any other.

/// What the functional, in-place, out= and mutable variants of one operator have in common: two
/// operators belong together when this text is the same.
std::string group_key(const Schema& schema);

/// The out= variant: every tensor that `schema` returns, or `self` when it works in place, becomes
/// an argument to write to. Empty for a schema that is one already or returns no tensor.
std::optional<Schema> derive_out(const Schema& schema);

/// The functional variant: written arguments become results. Empty for a functional schema.
std::optional<Schema> derive_functional(const Schema& schema);

}  // namespace backendgen
