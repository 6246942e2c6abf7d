// SPDX-License-Identifier: Apache-2.0
// Stands for PyTorch's <torch/csrc/autograd/profiler.h>, which the header of DDP's timers includes
// and does not use; see <ATen/ATen.h> beside it.
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR <= 15
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <c10/util/Registry.h>
#else
#include_next <torch/csrc/autograd/profiler.h>
#endif
