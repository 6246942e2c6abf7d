// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "description/description.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"

namespace backendgen {

/// How an operator gets its kernel from a line of [operators.kernels].
enum class Derivation {
  kNamed,                 // the function is the kernel
  kStructuredFunctional,  // the function is called between PyTorch's meta function ...
  kStructuredInPlace,
  kStructuredOut,        // ... and the return, for all variants
  kOutOfFunctional,      // the function's result is written to the `out` argument
  kInPlaceOfFunctional,  // or to the tensor itself
  kInPlaceOfOut,         // the function writes to a tensor that is copied to the tensor itself
};

struct ServedOperator {
  const Operator* op;
  Derivation how;
};

/// The operators that a kernel of the description answers: the one that it names, first, and those
/// of its variants that follow. Those do not that have a line of their own, nor those for which
/// PyTorch has an implementation for every device.
///
/// The out= operator of a structured group gives all variants, else the functional variant of any
/// operator the out= and in-place ones, else an out= operator the in-place one: the first of these
/// that has a line of its own. A functional variant does not follow from an out= one without a
/// structured kernel: its dtype is not known.
std::vector<ServedOperator> served_operators(const Kernel& kernel,
                                             const std::unordered_set<std::string>& named,
                                             const Catalog& catalog);

/// The names of the operators that have a line of their own.
std::unordered_set<std::string> named_operators(const Description& description);

/// Whether the kernel named `op` is a structured one.
bool is_structured_out(const Operator& op);

/// Whether PyTorch has no implementation of `op` that works on every device.
bool needs_kernel(const Operator& op);

/// The C++ type of the function that the vendor writes for `op`. Empty when the schema has a type
/// that has no C++ counterpart here; `unknown` is that type then.
Result<Signature> kernel_signature(const Operator& op);

}  // namespace backendgen
