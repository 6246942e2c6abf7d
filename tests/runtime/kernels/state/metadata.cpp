// SPDX-License-Identifier: Apache-2.0
// What a backend keeps with a tensor, here whether its numbers are tiled, is saved with it.
#include <torch/library.h>

#include "runtime.h"

namespace {

struct Tiled : c10::BackendMeta {};

void set_tiled(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<Tiled>());
}

bool is_tiled(const at::Tensor& tensor) {
  return dynamic_cast<Tiled*>(tensor.unsafeGetTensorImpl()->get_backend_meta()) != nullptr;
}

}  // namespace

void foo::Runtime::save_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata) {
  if (is_tiled(tensor)) metadata["foo.tiled"] = true;
}

void foo::Runtime::load_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata) {
  if (metadata["foo.tiled"]) set_tiled(tensor);
}

TORCH_LIBRARY(foo_metadata, library) {
  library.def("set_tiled(Tensor tensor) -> ()", &set_tiled);
  library.def("is_tiled(Tensor tensor) -> bool", &is_tiled);
}
