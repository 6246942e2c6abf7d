// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "torch/schema.h"

namespace backendgen {

/// The name of the Python function of an operator: "add" of `add`, "add_out" for `add.out`.
std::string custom_python_name(const Schema& schema);

/// A type in Python's annotations; empty when there is none.
std::string python_type(const Type& type, bool result);

/// Whether this is a number as Python writes it: no `1-`, which the schema's parser lets pass, and
/// no `01`.
bool is_python_number(std::string_view text);

/// A default of a schema in Python; empty when it is no literal.
std::string python_default(const std::string& value);

/// What the function returns: "torch.Tensor", "tuple[torch.Tensor, int]", "None".
std::string python_result(const Schema& schema);

/// Its parameters with their types and defaults: "x: torch.Tensor, *, eps: float = 1e-6".
std::string python_parameters(const Schema& schema);

/// What it passes on: "x, eps=eps".
std::string python_arguments(const Schema& schema);

}  // namespace backendgen
