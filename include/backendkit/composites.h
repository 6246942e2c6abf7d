// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include <torch/library.h>

#include <backendkit/has_kernel.h>
#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// Operators that PyTorch has a kernel of the CPU for and, for any other device, one that it makes
/// of other operators, which comes before a fallback. The latter is not the same: it has other
/// strides or dtypes, refuses some memory formats, or warns twice.
/// `tests/device/test_composites.py` has the list of what each release of PyTorch has of the kind,
/// and generator/ops/builtin.cpp has this one, for `backendgen ops`.
struct Composite {
  const char* op;
  /// Kernels of the vendor with which PyTorch's is better nevertheless: it stays on the device, and
  /// only takes other names for what it calls.
  std::initializer_list<const char*> pieces = {};
};

/// Registers `answer`, a fallback to the CPU, for these operators where the vendor has neither a
/// kernel nor the pieces of one.
template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* answer>
void register_composites(torch::Library& aten) {
  const Composite all[] = {
      {"_stack", {"cat"}},
      {"_stack.out", {"cat.out"}},
      {"addr"},
      {"addr.out"},
      {"addr_"},  // its kernel for all devices asks whether `self` and `out` are one object
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
