// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "description/description.h"
#include "ops/states.h"
#include "torch/catalog.h"
#include "torch/install.h"

namespace backendgen {

/// What `backendgen ops` shows, in memory.
struct OperatorReport {
  const Catalog* catalog;
  TorchVersion torch;
  const Description* description;  // null without one
  std::vector<OperatorStatus> operators;
};

/// The C++ function that a kernel of this operator is, "at::Tensor mm(const at::Tensor& self, …);";
/// empty when the operator cannot have one.
std::string cpp_declaration(const Operator& op);

/// One operator a line: state, name, reason.
std::string operators_text(const std::vector<OperatorStatus>& operators);

/// For each operator its schema and its C++ function, an empty line between two operators.
std::string schemas_text(const std::vector<OperatorStatus>& operators);

/// One JSON object; docs/ops.md documents its keys. One operator a line.
std::string operators_json(const OperatorReport& report);

}  // namespace backendgen
