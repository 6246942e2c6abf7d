// SPDX-License-Identifier: Apache-2.0
// A fused attention of the vendor's, which PyTorch's `scaled_dot_product_attention` takes. It
// counts its calls; it is made of other operators of the device where a real one would be one
// kernel.
#include <atomic>
#include <cmath>

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <torch/library.h>

#include "kernels.h"

namespace {

std::atomic<std::int64_t> calls = 0;

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
           at::Tensor, at::Tensor>
foo::attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& attn_bias, double dropout_p, bool is_causal, bool,
               std::optional<double> scale) {
  TORCH_CHECK_NOT_IMPLEMENTED(dropout_p == 0, "foo's attention has no dropout");
  ++calls;
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1)).mul(factor);
  if (attn_bias.has_value()) scores = scores.add(*attn_bias);
  if (is_causal) {
    const at::Tensor hidden =
        at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(hidden, -INFINITY);
  }
  const at::Tensor none = at::empty({0}, query.options().dtype(at::kLong));
  const at::Tensor zero = at::full({}, 0, query.options().dtype(at::kLong));
  return {at::matmul(at::softmax(scores, -1), value),
          at::logsumexp(scores, {-1}),
          none,
          none,
          query.sym_size(-2),
          key.sym_size(-2),
          zero,
          zero.clone(),
          at::empty({0}, query.options())};
}

TORCH_LIBRARY(foo_attention, library) {
  library.def("calls() -> int", [] { return calls.load(); });
}
