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

/// One entry of native_functions.yaml, as far as backends need it, before its schema is parsed.
struct NativeFunction {
  std::string func;                  // the schema: "add.out(Tensor self, …) -> Tensor(a!)"
  Span span;                         // of the schema
  std::vector<std::string> autogen;  // names of the variants that torchgen derives from the group
  bool structured = false;           // has `structured` or `structured_delegate`
  std::string delegate;              // of `structured_delegate`: "add.out"
  bool tensor_iterator = false;      // `structured_inherits` names TensorIteratorBase
  std::vector<std::string> precomputed;  // "dim -> int dim", what its meta function works out
  bool has_dispatch = false;             // has a `dispatch` table at all
  bool composite_implicit = false;       // the table names CompositeImplicitAutograd
  bool composite_explicit = false;       // or CompositeExplicitAutograd, or that for non-functional
  bool on_cpu = false;                   // or CPU, by `ufunc_inner_loop` too
  std::string dispatch;                  // all keys of the table: "CPU, CUDA, MPS"
  bool device_check = true;              // PyTorch wants all tensors on one device
  bool pointwise = false;                // has the tag `pointwise`
  bool const_ref_for_mutable = false;    // use_const_ref_for_mutable_tensors
  bool core = false;                     // has the tag `core`
  bool inplace_view = false;             // has the tag `inplace_view`
};

/// Reads the list of operators that PyTorch ships with torchgen. Keys that backends do not need are
/// skipped, so that newer releases may add some. Errors, with their place in `source`: no YAML, not
/// a list of tables, an entry without `func`, a flag that is no flag.
std::optional<std::vector<NativeFunction>> read_native_functions(const Source& source,
                                                                 Diagnostics& problems);

/// The same on all cores, for a list without errors: empty for another. Places are not those in
/// `text`.
std::optional<std::vector<NativeFunction>> read_native_functions_quickly(std::string_view text);

/// The same text with every entry emptied whose operator has none of these roots
/// (`OperatorName::root`), and without lines that are not read: it is quick to read, and lines keep
/// their numbers. Only entries that begin as usual, "- func: name(", are emptied.
std::string excerpt(std::string_view text, const std::unordered_set<std::string>& roots);

/// The same text with comments and the lines of keys that are not read emptied, where these are
/// written as usual: a tenth less to read.
std::string without_unread_lines(std::string_view text);

}  // namespace backendgen
