// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "description/description.h"
#include "glue/template.h"
#include "torch/catalog.h"
#include "torch/install.h"

namespace backendgen {

/// An operator that autocast treats.
struct AutocastOperator {
  std::string op;  // softmax.int
  CastPolicy policy;
  /// The overload that takes the dtype of the result, for an operator that takes none itself:
  /// `ScalarOpt_dtype` for `norm.Scalar`.
  std::string with_dtype;
};

/// Judges the lists of [amp]: unknown operators, and those that a policy would break or do nothing
/// for.
void check_autocast(const Description& description, const Catalog& catalog,
                    const TorchInstall& torch, Diagnostics& problems);

/// The operators that a description leaves to PyTorch's own lists: to those that it does not give;
/// none when it names no dtype for autocast.
std::vector<std::string_view> usual_autocast_operators(const Description& description);

/// The operators that autocast treats on the device, by the lists of a checked description and, for
/// a policy without one, by PyTorch's for CUDA, as far as this PyTorch has them. A list that is
/// given goes before PyTorch's. Empty when the description names no dtype for autocast.
std::vector<AutocastOperator> model_autocast(const Description& description, const Catalog& catalog,
                                             const TorchVersion& release);

/// The template list `autocast`: `op`, `policy` (kFp32, as backendkit::CastPolicy names it) and
/// `with_dtype`.
std::vector<Values> autocast_rows(const std::vector<AutocastOperator>& operators);

}  // namespace backendgen
