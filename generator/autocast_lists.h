// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "description.h"
#include "torch_install.h"

namespace backendgen {

/// The operators that PyTorch treats so in CUDA's autocast, in any release from 2.5 on:
/// ATen/autocast_mode.h. A release may lack some.
std::span<const std::string_view> usual_autocast_list(CastPolicy policy);

/// Whether a release that has such an operator treats it so: some came to the list later.
bool is_usual_in(std::string_view op, const TorchVersion& release);

/// Those of them that a description leaves to PyTorch: of the lists that it does not give; none
/// when it names no dtype for autocast.
std::vector<std::string_view> usual_autocast_operators(const Description& description);

}  // namespace backendgen
