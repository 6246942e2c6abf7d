// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "description/description.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"
#include "torch/install.h"

namespace backendgen {

/// Reports that PyTorch has no operator `op`, with the one that was most likely meant: of overloads
/// the first, or, `for_kernel`, the out= one, for which kernels are best written.
void report_unknown_operator(const Text& op, bool for_kernel, const Catalog& catalog,
                             const TorchInstall& torch, Diagnostics& problems);

/// Judges [operators.kernels]: unknown operators, operators that no backend can register, C++
/// functions that two operators want with the same parameters but another result. Warns of kernels
/// that take away a gradient, and of variants that stay without a kernel. Returns the C++ types of
/// each kernel, in the description's order; nothing for one whose operator is wrong.
std::vector<std::optional<Signature>> check_operators(const Description& description,
                                                      const Catalog& catalog,
                                                      const TorchInstall& torch,
                                                      Diagnostics& problems);

}  // namespace backendgen
