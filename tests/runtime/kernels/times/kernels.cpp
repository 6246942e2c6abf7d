// SPDX-License-Identifier: Apache-2.0
// Kernels that take a known time on the device, and return at once.
#include "kernels.h"

#include <chrono>
#include <thread>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/neg.h>
#include <backendkit/call_fallback.h>

#include "runtime.h"

namespace {

constexpr auto kLong = std::chrono::milliseconds(100);

}  // namespace

void foo::neg(const at::Tensor& self, const at::Tensor& out) {
  const float* from = simulator::inside(self.const_data_ptr<float>());
  float* to = simulator::inside(out.mutable_data_ptr<float>());
  launch([=, count = out.numel()] {
    std::this_thread::sleep_for(kLong);
    for (std::int64_t i = 0; i < count; ++i) to[i] = -from[i];
  });
}

/// Work of its own, then another kernel, then a copy; no exponential.
void foo::exp(const at::Tensor& self, const at::Tensor& out) {
  launch([] { std::this_thread::sleep_for(2 * kLong); });
  out.copy_(at::neg(self));
}

/// Leaves every call to the fallback.
void foo::tanh(const at::Tensor& self, const at::Tensor& out) {
  std::this_thread::sleep_for(kLong);
  torch::jit::Stack stack{self, out};
  backendkit::call_fallback(c10::Dispatcher::singleton().findSchemaOrThrow("aten::tanh", "out"),
                            &stack);
}

void foo::sin(const at::Tensor&, const at::Tensor&) {
  TORCH_CHECK(false, "no kernel of the tests computes a sine");
}

at::Tensor foo::relu(const at::Tensor&) {
  TORCH_CHECK(false, "this kernel fails");
}

void foo::quick(at::Tensor& x) {
  float* to = simulator::inside(x.mutable_data_ptr<float>());
  launch([=] { *to = 1; });
}
