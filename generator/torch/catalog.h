// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "torch/install.h"
#include "torch/native_functions.h"
#include "torch/schema.h"

namespace backendgen {

/// An operator of PyTorch.
struct Operator {
  Schema schema;
  bool derived = false;  // not in native_functions.yaml: torchgen makes it for an `autogen` entry
  bool structured = false;       // its group has a structured kernel
  std::string delegate = {};     // the out= operator whose structured kernel it uses: "add.out"
  bool tensor_iterator = false;  // a structured kernel that is a TensorIterator
  std::vector<std::string> precomputed =
      {};                              // "dim -> int dim": what a structured kernel gets instead
  bool composite_implicit = false;     // made of other operators, which autograd differentiates
  bool composite_explicit = false;     // made of other operators, on every device
  bool on_cpu = false;                 // the CPU has a kernel of its own
  std::string dispatch = {};           // what PyTorch has kernels for: "CPU, CUDA, MPS"
  std::string base = {};               // of a derived operator: the one that it is made of
  bool core = false;                   // of the set that exported models consist of
  bool device_check = true;            // PyTorch wants all its tensors on one device
  bool pointwise = false;              // an element of the result depends on one of each argument
  bool inplace_view = false;           // changes the sizes or the memory of a tensor in place
  bool const_ref_for_mutable = false;  // written tensors are passed as `const at::Tensor&`
};

/// All operators of one PyTorch, those that torchgen derives included.
class Catalog {
 public:
  /// Operators of different names, and the `group_key` of each.
  Catalog(std::vector<Operator> operators, std::vector<std::string> keys);

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

/// The same, a little faster, and without a word on what is wrong: nothing then.
std::optional<Catalog> read_catalog_ahead(const TorchInstall& torch, const Disk& disk);

/// The operators with these names, and those of `usual` that there are, ten times faster if they
/// are few: the catalog may lack others. It has all when one of `names` is unknown, so that another
/// can be suggested. `ahead` is what `read_catalog_ahead` gave, if it was called.
std::optional<Catalog> read_catalog_for(const std::vector<std::string>& names,
                                        const std::vector<std::string_view>& usual,
                                        const TorchInstall& torch, const Disk& disk,
                                        Diagnostics& problems,
                                        std::optional<Catalog> ahead = std::nullopt);

}  // namespace backendgen
