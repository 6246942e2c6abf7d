// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include <torch/library.h>

#include <backendkit/has_kernel.h>
#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// Operators for which PyTorch has a kernel on the CPU and a composite implementation for every
/// other device, which takes precedence over a fallback. The composite differs: it has other
/// strides or dtypes, rejects some memory formats, or warns twice.
/// `tests/device/test_composites.py` lists such operators in each release of PyTorch;
/// generator/ops/builtin.cpp has the list below too, for `backendgen ops`.
struct Composite {
  const char* op;
  /// If the vendor has these kernels, PyTorch's composite is better after all: it runs on the
  /// device.
  std::initializer_list<const char*> pieces = {};
};

/// Registers `answer`, a fallback to the CPU, for those of these operators for which the vendor has
/// neither a kernel nor all of the pieces.
template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* answer>
void register_composites(torch::Library& aten) {
  const Composite all[] = {
      {"_stack", {"cat"}},
      {"_stack.out", {"cat.out"}},
      {"addr"},
      {"addr.out"},
      {"addr_"},  // its composite checks whether `self` and `out` are the same object
      {"all.dims", {"all.dim"}},
      {"all.dims_out", {"all.dim"}},
      {"any.dims", {"any.dim"}},
      {"any.dims_out", {"any.dim"}},
      {"index.Tensor"},
      {"linalg__powsum"},
      {"mish_backward", {"mul.Tensor", "sigmoid", "softplus", "tanh"}},
      {"mode.values"},
      {"native_channel_shuffle"},
      {"native_group_norm"},
      {"native_layer_norm"},
      {"pixel_shuffle"},
      {"pixel_unshuffle"},
      {"silu_backward", {"mul.Tensor", "sigmoid"}},
  };
  for (const Composite& one : all) {
    const bool has_pieces =
        one.pieces.size() > 0 && std::all_of(one.pieces.begin(), one.pieces.end(), &has_kernel);
    if (!has_pieces) register_boxed_unless_own<answer>(aten, one.op);
  }
}

}  // namespace backendkit
