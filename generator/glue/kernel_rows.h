// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "glue/kernel_model.h"
#include "glue/template.h"

namespace backendgen {

/// Kernels whose models are somewhere else.
using Kernels = std::vector<const KernelModel*>;

/// All of `models`, which must outlive the result.
Kernels all_of(const std::vector<KernelModel>& models);

/// Declares each C++ function once, sorted by namespace, below a comment with the schemas of the
/// operators that it serves. An empty line stands between two and after the last.
std::string declarations(const Kernels& kernels);

/// The same functions, a line each, without comments and names of parameters.
std::string short_declarations(const Kernels& kernels);

/// The template list `kernel_headers`: `header`, each once, sorted.
std::vector<Values> header_rows(const Kernels& kernels);

/// The template list `meta_headers`: `header`, what declares the meta functions, sorted.
std::vector<Values> meta_header_rows(const Kernels& kernels);

/// A struct for each kernel, `add_out_kernel`, which has its traits; an empty line between two.
std::string kernel_structs(const Kernels& kernels);

/// A line for each operator that kernels answer, which registers its function.
std::string registration_lines(const Kernels& kernels);

/// A line for each operator that kernels answer: its name as an item of a C++ array; sorted.
std::string operator_lines(const Kernels& kernels);

/// The kernels of each file of registrations, none of them empty. An operator's variants stay
/// together, and adding a kernel changes one file unless their number changes.
std::vector<Kernels> shards(const Kernels& kernels);

}  // namespace backendgen
