// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "description/description.h"
#include "torch/catalog.h"
#include "torch/install.h"

namespace backendgen {

enum class ChangeKind { kAdded, kRemoved, kChanged };

/// An operator that differs between two releases of PyTorch.
struct OperatorChange {
  ChangeKind kind;
  std::string name;
  std::string before, after;          // its schemas; empty where it does not exist
  std::string cpp_before, cpp_after;  // the C++ functions that a kernel is; may be empty
  std::string kernel;  // the description's function that answers it in either release, or nothing
};

/// Everything that was added, removed, or has another schema or another C++ function, sorted by
/// name. `description` may be null.
std::vector<OperatorChange> compare_catalogs(const Catalog& before, const Catalog& after,
                                             const Description* description);

/// Which two releases are compared.
struct Releases {
  TorchVersion before, after;
};

std::string changes_text(const std::vector<OperatorChange>& changes);

/// One JSON object; docs/ops.md documents its keys.
std::string changes_json(const std::vector<OperatorChange>& changes, const Releases& releases);

/// "12 added, 3 removed, 5 changed; 1 has a kernel of yours"
std::string changes_summary(const std::vector<OperatorChange>& changes);

}  // namespace backendgen
