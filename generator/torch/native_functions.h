// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"

namespace backendgen {

/// What native_functions.yaml says of an operator besides its schema.
struct OperatorFacts {
  bool structured = false;       // its group has a structured kernel
  std::string delegate;          // the out= operator whose structured kernel it uses: "add.out"
  bool tensor_iterator = false;  // a structured kernel that is a TensorIterator
  std::vector<std::string> precomputed;  // "dim -> int dim": what a structured kernel gets instead
  bool composite_implicit = false;       // made of other operators, which autograd differentiates
  bool composite_explicit = false;       // made of other operators, on every device
  bool on_cpu = false;                   // the CPU has a kernel of its own
  std::string dispatch;                  // what PyTorch has kernels for: "CPU, CUDA, MPS"
  bool core = false;                     // of the set that exported models consist of
  bool device_check = true;              // PyTorch wants all its tensors on one device
  bool pointwise = false;                // an element of the result depends on one of each argument
  bool inplace_view = false;             // changes the sizes or the memory of a tensor in place
  bool const_ref_for_mutable = false;    // written tensors are passed as `const at::Tensor&`
};

/// One entry of native_functions.yaml, as far as backends need it, before its schema is parsed.
struct NativeFunction : OperatorFacts {
  std::string func;                  // the schema: "add.out(Tensor self, …) -> Tensor(a!)"
  Span span;                         // of the schema
  std::vector<std::string> autogen;  // names of the variants that torchgen derives from the group
  bool has_dispatch = false;         // has a `dispatch` table at all
};

/// Reads the list of operators that PyTorch ships with torchgen. Keys that backends do not need are
/// skipped, so that newer releases may add some. Errors, with their place in `source`: no YAML, not
/// a list of tables, an entry without `func`, a flag that is no flag.
std::optional<std::vector<NativeFunction>> read_native_functions(const Source& source,
                                                                 Diagnostics& problems);

/// The same text with every entry emptied whose operator has none of these roots
/// (`OperatorName::root`); lines keep their numbers. Only entries that begin as usual,
/// "- func: name(", are emptied. `generate` for 43 operators takes 9 ms of CPU time with the rest,
/// 26 ms with the whole list.
std::string entries_of(std::string_view text, const std::unordered_set<std::string>& roots);

}  // namespace backendgen
