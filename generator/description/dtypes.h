// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "description/validate.h"

namespace backendgen {

/// PyTorch's name of a dtype in C++, as in at::ScalarType::Float, for its name in Python; empty for
/// what is no dtype that kernels are written for.
std::string_view scalar_type(std::string_view dtype);

/// The names of all dtypes, in the order in which they are listed to people.
std::vector<std::string> dtype_names();

/// What is wrong with the name of a dtype of [operators].
std::optional<Complaint> judge_dtype(std::string_view dtype);

/// The names of the dtypes that autocast may use.
std::vector<std::string> amp_dtype_names();

/// What is wrong with the name of a dtype of [amp].
std::optional<Complaint> judge_amp_dtype(std::string_view dtype);

}  // namespace backendgen
