// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/jit/serialization/pickler.h>

#include <backendkit/device/device.h>

namespace backendkit {

/// Makes PyTorch save and restore what a backend keeps with a tensor, if the Runtime has the
/// functions for it. Call it once, when the library is loaded.
template <class Runtime>
void register_metadata() {
  if constexpr (HasMetadata<Runtime>) {
    torch::jit::TensorBackendMetaRegistry(
        kDeviceType,
        [](const at::Tensor& tensor, TensorMetadata& metadata) {
          Driver<Runtime>::save_metadata(tensor, metadata, tensor.device().index());
        },
        [](const at::Tensor& tensor, TensorMetadata& metadata) {
          Driver<Runtime>::load_metadata(tensor, metadata, tensor.device().index());
        });
  }
}

}  // namespace backendkit
