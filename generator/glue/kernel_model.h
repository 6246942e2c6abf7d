// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "description/description.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"

namespace backendgen {

/// An operator that a kernel answers, as C++ registers it.
struct RegistrationModel {
  std::string op;      // add_.Tensor
  std::string kernel;  // backendkit::Structured<"add_.Tensor", …>: has the function to register
};

/// A kernel of the description as the templates see it.
struct KernelModel {
  std::string op;                  // add.out
  std::string op_id;               // add_out, as in at::_ops::add_out; an identifier
  std::string root;                // add: what an operator's variants have in common
  std::string function;            // foo::add
  std::string function_namespace;  // foo; empty for a function of the global namespace
  std::string function_name;       // add
  std::string schema;              // add.out(Tensor self, …) -> Tensor(a!)
  std::string signature;           // void (const at::Tensor&, …, const at::Tensor&)
  std::string return_type;         // void
  std::string declaration;         // void add(const at::Tensor& self, …); maybe several lines
  std::string names;               // self, other, alpha, out: the operator's arguments
  std::string dtypes;              // backendkit::Dtypes{…}; empty: all of them
  std::vector<std::string_view> headers;  // ATen/core/Tensor.h, …: what declares these types
  bool one_device = false;                // PyTorch wants its tensors on one device
  bool dense = false;                     // [operators] inputs
  bool error = false;                     // [operators] unsupported
  std::vector<RegistrationModel> registrations;  // the operator that is named comes first

  // Of a structured kernel; else empty.
  std::string meta_class;       // add_Tensor, as in at::meta::structured_add_Tensor
  std::string meta_header;      // ATen/ops/add_meta.h
  std::string meta_parameters;  // const at::Tensor& self, const at::Tensor& other, …
  std::string meta_arguments;   // self, other, alpha
  std::string call_arguments;   // call.in(self), call.in(other), alpha, call.out(0)
  std::size_t outputs = 0;
  bool has_precomputed = false;
  bool elementwise = false;
  bool has_dtype = false;  // an argument says the dtype of the result

  bool structured() const { return !meta_class.empty(); }
};

/// What is known of a C++ function from only its name and signature: how to declare it.
KernelModel model_function(const std::string& function, const Signature& signature);

/// The models of a description's kernels, in its order. `signatures` are what `check_operators`
/// gave when it found no error.
std::vector<KernelModel> model_kernels(const Description& description,
                                       const std::vector<std::optional<Signature>>& signatures,
                                       const Catalog& catalog);

}  // namespace backendgen
