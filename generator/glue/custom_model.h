// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "description/description.h"
#include "glue/kernel_model.h"
#include "glue/template.h"
#include "torch/cpp_types.h"
#include "torch/schema.h"

namespace backendgen {

/// The C++ functions that custom operators name, to be declared in kernels.h beside the kernels.
std::vector<KernelModel> custom_functions(const Description& description);

/// Adds the template lists of custom operators: `custom` for all of them; `custom_views` for those
/// that return views of arguments, and `custom_kernels` for the others. Of these, `custom_cpu`,
/// `custom_meta`, `custom_fakes` and `custom_formulas` (for gradients) are those that have such a
/// function; `custom_writes` if they write to arguments; `custom_plain` the rest without a formula;
/// `custom_declarations` and `custom_headers` as for kernels. `functions` are those of
/// `custom_functions`.
void add_custom_rows(const Description& description, const std::vector<KernelModel>& functions,
                     Values& values);

}  // namespace backendgen
