// SPDX-License-Identifier: Apache-2.0
// Stands for PyTorch's <ATen/ATen.h> in the file that includes the headers of process groups, and
// only there. Those headers use three of its operators; all of them would more than double the time
// to compile the file. A release that nobody has tested gets PyTorch's own header.
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR <= 15
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>
#else
#include_next <ATen/ATen.h>
#endif
