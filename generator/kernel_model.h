// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog.h"
#include "description.h"
#include "diagnostic.h"
#include "torch_install.h"

namespace backendgen {

/// A kernel of the description as the templates see it.
struct KernelModel {
  std::string op;                    // add.out
  std::string op_id;                 // add_out, as in at::_ops::add_out; an identifier
  std::string function;              // foo::add
  std::string function_namespace;    // foo; empty for a function of the global namespace
  std::string function_name;         // add
  std::string schema;                // add.out(Tensor self, …) -> Tensor(a!)
  std::string signature;             // at::Tensor& (const at::Tensor&, …, at::Tensor&)
  std::string return_type;           // at::Tensor&
  std::string parameters;            // const at::Tensor& self, …, at::Tensor& out
  std::string arguments;             // self, other, alpha, out
  std::string guard;                 // 0, 3, 1: the arguments that tell the device, best first
  std::vector<std::string> headers;  // ATen/core/Tensor.h, …: what declares these types

  /// One row of the template list `kernels`: every text above under its name.
  std::map<std::string, std::string> values() const;
};

/// The models of a description's kernels, in its order. Judges them with `check_operators` first;
/// empty when that finds an error.
std::optional<std::vector<KernelModel>> model_kernels(const Description& description,
                                                      const Catalog& catalog,
                                                      const TorchInstall& torch,
                                                      Diagnostics& problems);

using Rows = std::vector<std::map<std::string, std::string>>;

/// The template list `kernel_declarations`: each C++ function once, sorted by namespace, with
/// `schemas` (comment lines of the operators it serves), `return_type`, `function_name`,
/// `parameters` (on several lines if one is too short), and `opens` and `closes`: the lines that
/// begin and end a namespace, at the first and the last of its functions, else empty.
Rows declaration_rows(const std::vector<KernelModel>& kernels);

/// The template list `kernel_headers`: `header`, each once, sorted.
Rows header_rows(const std::vector<KernelModel>& kernels);

}  // namespace backendgen
