#pragma once

#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include "indexing.h"

namespace ocl {

/// What `self[indices]` means, as NumPy has it: a tensor that is not defined takes a whole
/// dimension, a mask counts as the places where it is true, and all are broadcast. Throws PyTorch's
/// errors. Waits for the device if there is a mask. There may be more than kMostChoosers.
Chosen chosen_by(const at::Tensor& self, const std::vector<at::Tensor>& indices);

/// The indices in the host's memory.
c10::List<std::optional<at::Tensor>> on_host(const std::vector<at::Tensor>& indices);

}  // namespace ocl
