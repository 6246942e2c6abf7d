// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "torch/catalog.h"
#include "torch/schema.h"

namespace backendgen {

/// Whether symbolic integers stay what they are (`c10::SymInt`), as the dispatcher passes them, or
/// arrive as numbers (`int64_t`, `at::IntArrayRef`), as kernels want them. Results stay symbolic in
/// either case: that is PyTorch's rule.
enum class SymInts { kSymbolic, kNumbers };

struct Parameter {
  std::string type;  // "const at::Tensor&"
  std::string name;  // "self"
};

/// The C++ side of an operator in the dispatcher's calling convention: arguments in the schema's
/// order, tensor options one by one.
struct Signature {
  std::string return_type;
  std::vector<Parameter> parameters;

  std::string type() const;         // "at::Tensor& (const at::Tensor&, at::Tensor&)"
  std::string declaration() const;  // "const at::Tensor& self, at::Tensor& out"
  std::string arguments() const;    // "self, out"

  /// "void add(const at::Tensor& self)"; one parameter a line where that and `more` characters
  /// after it have no room in 100 columns.
  std::string head(const std::string& function, std::size_t more) const;
};

/// The C++ types that PyTorch expects of a kernel of `op`. Fails for a type of schemas that has no
/// counterpart in C++ here, as do the two below.
Result<Signature> cpp_signature(const Operator& op, SymInts symints);

/// The C++ function that computes an operator of the vendor.
Result<Signature> custom_signature(const Schema& schema);

/// What a structured kernel computes from: its meta function gets the arguments of the functional
/// variant; the kernel gets them with what the meta function has worked out, and then the results.
struct StructuredSignature {
  std::vector<Parameter> meta;    // const at::Tensor& self, int64_t dim, bool keepdim
  std::vector<Parameter> kernel;  // the same, and const at::Tensor& max, …
  std::vector<bool> precomputed;  // of the kernel's parameters: is it of the meta function
};

/// The C++ types of a structured kernel, whose out= operator is `out`. A precomputed value takes
/// the place of the argument that it comes from, but a tensor stays beside it.
Result<StructuredSignature> structured_signature(const Operator& out);

/// The positions of the arguments that tell which device a kernel works on, in PyTorch's order: the
/// device among a factory's tensor options, `self`, what is written to, the other positional ones.
std::vector<std::size_t> device_order(const Schema& schema);

/// The headers of PyTorch that declare the types of a signature, such as "ATen/core/Tensor.h";
/// sorted.
std::vector<std::string_view> cpp_headers(const Signature& signature);

}  // namespace backendgen
