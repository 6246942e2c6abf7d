// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel_model.h"
#include "template.h"

namespace backendgen {

/// Kernels whose models are somewhere else.
using Kernels = std::vector<const KernelModel*>;

/// All of `models`, which must outlive the result.
Kernels all_of(const std::vector<KernelModel>& models);

/// Declares each C++ function once, sorted by namespace, below a comment with the schemas of the
/// operators that it serves. An empty line stands between two and behind the last.
std::string declarations(const Kernels& kernels);

/// The template list `kernel_headers`: `header`, each once, sorted.
std::vector<Values> header_rows(const Kernels& kernels);

/// The template list `meta_headers`: `header`, what declares the meta functions, sorted.
std::vector<Values> meta_header_rows(const Kernels& kernels);

/// The template list `kernels`: what a kernel's traits say, and its list `registrations`.
std::vector<Values> kernel_rows(const Kernels& kernels);

/// The template list `kernel_operators`: `op`, every operator that kernels answer, sorted.
std::vector<Values> operator_rows(const Kernels& kernels);

/// The kernels of each file of registrations, none of them empty. An operator's variants stay
/// together, and adding a kernel changes one file unless their number changes.
std::vector<Kernels> shards(const Kernels& kernels);

}  // namespace backendgen
