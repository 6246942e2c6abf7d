// SPDX-License-Identifier: Apache-2.0
// Kernels of custom operators, for the simulated device and the CPU: both are threads of the host,
// which finds the device's memory inside the simulator. `scale_` is launched on the current stream,
// others wait for it.
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/unbind.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>

#include <backendkit/stream.h>

#include "kernels.h"
#include "runtime.h"

namespace {

/// Where a loop finds the elements of a tensor.
const float* elements(const at::Tensor& tensor) {
  const auto* const data = tensor.const_data_ptr<float>();
  return tensor.is_cpu() ? data : foo::simulator::inside(data);
}

float* mutable_elements(const at::Tensor& tensor) {
  auto* const data = tensor.mutable_data_ptr<float>();
  return tensor.is_cpu() ? data : foo::simulator::inside(data);
}

/// The same for a loop on the host, which the device's work has to be done before.
const float* ready(const at::Tensor& tensor) {
  if (tensor.is_privateuseone()) {
    backendkit::Streams<foo::Runtime>::synchronize_current(tensor.device().index());
  }
  return elements(tensor);
}

}  // namespace

at::Tensor foo::fused_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "fused_rms_norm takes float32");
  const at::Tensor in = x.contiguous();
  const at::Tensor scale = weight.contiguous();
  at::Tensor out = at::empty_like(in);
  const std::int64_t width = scale.numel();
  const auto* from = ready(in);
  const auto* by = elements(scale);
  auto* to = mutable_elements(out);
  for (std::int64_t row = 0; row < in.numel() / width; ++row, from += width, to += width) {
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += from[i] * from[i];
    const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + eps);
    for (std::int64_t i = 0; i < width; ++i) to[i] = static_cast<float>(from[i] * factor) * by[i];
  }
  return out;
}

void foo::scale_(at::Tensor& x, double factor) {
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == at::kFloat, "scale_ takes dense float32");
  const auto scale = [values = mutable_elements(x), count = x.numel(), factor] {
    for (std::int64_t i = 0; i < count; ++i) values[i] *= static_cast<float>(factor);
  };
  if (x.is_cpu()) {
    scale();
  } else {
    foo::launch(scale);
  }
}

void foo::scale_meta(at::Tensor&, double) {}

std::tuple<at::Tensor, at::Tensor> foo::first_and_last_meta(const at::Tensor& x, bool) {
  TORCH_CHECK(x.dim() == 2, "first_and_last takes a matrix");
  return {at::empty({x.size(1)}, x.options()), at::empty({x.size(1)}, x.options())};
}

std::tuple<at::Tensor, at::Tensor> foo::first_and_last(const at::Tensor& x, bool reverse) {
  auto results = foo::first_and_last_meta(x, reverse);
  const at::Tensor in = x.contiguous();
  const std::int64_t width = in.size(1);
  const auto* begin = ready(in);
  const auto* end = begin + (in.size(0) - 1) * width;
  auto& first = reverse ? std::get<1>(results) : std::get<0>(results);
  auto& last = reverse ? std::get<0>(results) : std::get<1>(results);
  std::copy_n(begin, width, mutable_elements(first));
  std::copy_n(end, width, mutable_elements(last));
  return results;
}

at::Tensor foo::filled(const at::Tensor& x, c10::string_view mode, at::IntArrayRef sizes,
                       std::optional<at::ScalarType> dtype, at::IntArrayRef order) {
  TORCH_CHECK(mode == "sum" || mode == "product", "mode is `sum` or `product`");
  TORCH_CHECK(order.size() == 2, "order has two numbers");
  const std::int64_t value = mode == "sum" ? order[0] + order[1] : order[0] * order[1];
  at::Tensor result = at::empty(sizes, x.options().dtype(dtype.value_or(x.scalar_type())));
  return result.fill_(value);
}

// Views: calls of PyTorch's operators, and nothing that looks at memory.
at::Tensor foo::leading(const at::Tensor& x, c10::SymInt rows) {
  return at::narrow_symint(x, 0, 0, std::move(rows));
}

std::vector<at::Tensor> foo::rows(const at::Tensor& x) {
  return at::unbind(x, 0);
}
