// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "torch/install.h"
#include "torch/native_functions.h"
#include "torch/schema.h"

namespace backendgen {

/// An operator of PyTorch.
struct Operator : OperatorFacts {
  explicit Operator(Schema op_schema, OperatorFacts facts = {})
      : OperatorFacts(std::move(facts)), schema(std::move(op_schema)) {}

  Schema schema;
  bool derived = false;  // not in native_functions.yaml: torchgen makes it for an `autogen` entry
  std::string base;      // of a derived operator: the one that it is made of
};

/// All operators of one PyTorch, those that torchgen derives included.
class Catalog {
 public:
  /// Operators of different names.
  explicit Catalog(std::vector<Operator> operators);

  /// The operator with this name, such as "add.out"; null when there is none.
  const Operator* find(std::string_view name) const;

  /// The functional, in-place, out= and mutable variants of `op`, itself among them. `op` is one of
  /// `operators()`.
  std::vector<const Operator*> group(const Operator& op) const;

  /// In the order of native_functions.yaml; then the derived ones.
  const std::vector<Operator>& operators() const { return operators_; }

  /// The overloads of a base name, "add.Tensor", "add.Scalar", "add.out" of "add"; in file order.
  std::vector<std::string> overloads(std::string_view base) const;

 private:
  std::vector<Operator> operators_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::size_t> group_of_;  // the place in `groups_` of each operator
};

/// Makes the catalog of the entries of native_functions.yaml: what they list, and the out= and
/// functional variants that torchgen of that release adds for `autogen`. Errors have their place in
/// the file.
std::optional<Catalog> make_catalog(const std::vector<NativeFunction>& functions,
                                    const TorchVersion& release, Diagnostics& problems);

/// Reads the operators of an installed PyTorch. Errors name the file and the line in their text,
/// since `problems` is about another file.
std::optional<Catalog> read_catalog(const TorchInstall& torch, const Disk& disk,
                                    Diagnostics& problems);

/// The operators with these names, and those of `usual` that there are, ten times faster if they
/// are few: the catalog may lack others. It has all when one of `names` is unknown, so that another
/// can be suggested.
std::optional<Catalog> read_catalog_for(const std::vector<std::string>& names,
                                        const std::vector<std::string_view>& usual,
                                        const TorchInstall& torch, const Disk& disk,
                                        Diagnostics& problems);

}  // namespace backendgen
