// SPDX-License-Identifier: Apache-2.0
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

namespace {

void call_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("atan.out", torch::CppFunction::makeFromBoxedFunction<&call_fallback>());
}
