// SPDX-License-Identifier: Apache-2.0
// How a vendor's own copy asks PyTorch's allocator of pinned memory to keep what a stream uses.
#include <ATen/core/CachingHostAllocator.h>
#include <torch/library.h>

namespace {

/// Whether the allocator answers for the memory of a tensor of the CPU.
bool kept(const at::Tensor& tensor) {
  const c10::Stream stream(c10::Stream::DEFAULT, c10::Device(c10::kPrivateUse1, 0));
  return at::getHostAllocator(c10::kPrivateUse1)
      ->record_event(tensor.mutable_data_ptr(), tensor.storage().data_ptr().get_context(), stream);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(state, library) {
  library.def("kept(Tensor tensor) -> bool", &kept);
}
