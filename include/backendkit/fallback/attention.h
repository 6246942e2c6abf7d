// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <backendkit/fallback/host_random.h>
#include <backendkit/kernel/registrar.h>

namespace backendkit {

/// Fused attention on CPU tensors, for which PyTorch has no operator that a backend can fall back
/// to. Computes in float32 or wider; forward and backward derive the same dropout mask from one
/// state of the device's generator.
template <class Runtime>
class Attention {
 public:
  using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
                             c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;
  using Backward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

  /// aten::_scaled_dot_product_fused_attention_overrideable.
  static Forward forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& bias, double dropout, bool is_causal,
                         bool, std::optional<double> scale) {
    const Inputs in(query, key, value, bias, is_causal, scale);
    const at::Tensor scores = in.scores();
    const PhiloxState state =
        dropout > 0 ? philox_state<Runtime>(std::nullopt, kDrawnByHost) : PhiloxState{0, 0};
    const at::Tensor weights = dropped(in.weights(scores), state, dropout);
    const at::Tensor nothing = at::empty({0}, at::TensorOptions().dtype(at::kLong));
    return {in_layout_of(query, at::matmul(weights, in.value)),
            at::logsumexp(scores, {-1}),
            nothing,
            nothing.clone(),
            query.sym_size(-2),
            key.sym_size(-2),
            number(state.seed),
            number(state.offset),
            at::empty({0}, query.options())};
  }

  /// aten::_scaled_dot_product_fused_attention_overrideable_backward.
  static Backward backward(const at::Tensor& grad_output, const at::Tensor& query,
                           const at::Tensor& key, const at::Tensor& value, const at::Tensor& bias,
                           std::array<bool, 4> wanted, const at::Tensor&, const at::Tensor&,
                           const at::Tensor&, const at::Tensor&, const c10::SymInt&,
                           const c10::SymInt&, double dropout, bool is_causal,
                           const at::Tensor& seed, const at::Tensor& offset,
                           std::optional<double> scale) {
    const Inputs in(query, key, value, bias, is_causal, scale);
    const PhiloxState state{static_cast<std::uint64_t>(seed.item<std::int64_t>()),
                            static_cast<std::uint64_t>(offset.item<std::int64_t>())};
    const at::Tensor weights = in.weights(in.scores());
    const at::Tensor grad = grad_output.to(in.query.scalar_type());
    const at::Tensor grad_weights =
        dropped(at::matmul(grad, in.value.transpose(-2, -1)), state, dropout);
    const at::Tensor product = grad_weights.mul(weights);
    const at::Tensor grad_scores = product.sub(weights.mul(product.sum(-1, true)));
    Backward grads;
    if (wanted[0]) {
      std::get<0>(grads) = at::matmul(grad_scores, in.key).mul(in.scale).to(query.scalar_type());
    }
    if (wanted[1]) {
      std::get<1>(grads) =
          ungrouped(at::matmul(grad_scores.transpose(-2, -1), in.query).mul(in.scale), key);
    }
    if (wanted[2]) {
      std::get<2>(grads) =
          ungrouped(at::matmul(dropped(weights, state, dropout).transpose(-2, -1), grad), value);
    }
    if (wanted[3] && bias.defined()) {
      std::get<3>(grads) = grad_scores.sum_to_size(bias.sizes()).to(bias.scalar_type());
    }
    return grads;
  }

 private:
  struct Inputs {
    Inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
           const std::optional<at::Tensor>& b, bool causal, std::optional<double> factor)
        : query(widened(q)),
          key(grouped(widened(k), q)),
          value(grouped(widened(v), q)),
          bias(b.value_or(at::Tensor())),
          is_causal(causal),
          scale(factor.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))))) {}

    /// The input of the softmax; minus infinity where a query does not attend to a key.
    at::Tensor scores() const {
      at::Tensor scores = at::matmul(query, key.transpose(-2, -1)).mul_(scale);
      if (bias.defined()) {
        const bool is_mask = bias.scalar_type() == at::kBool;
        scores = is_mask ? scores.masked_fill(bias.logical_not(), kHidden) : scores.add(bias);
      }
      if (is_causal) {
        const at::Tensor seen =
            at::ones({query.size(-2), key.size(-2)}, at::TensorOptions().dtype(at::kBool)).tril();
        scores = scores.masked_fill(seen.logical_not(), kHidden);
      }
      return scores;
    }

    /// A query that attends to no key has weights of zero.
    at::Tensor weights(const at::Tensor& scores) const { return at::_safe_softmax(scores, -1); }

    at::Tensor query, key, value, bias;
    bool is_causal;
    double scale;
  };

  /// The result, with the strides that the CPU's own fused attention returns: those of the query,
  /// if it has as many heads and elements as the result.
  static at::Tensor in_layout_of(const at::Tensor& query, const at::Tensor& result) {
    if (result.sizes() == query.sizes()) return at::empty_like(query).copy_(result);
    return result.to(query.scalar_type());
  }

  static constexpr double kHidden = -std::numeric_limits<double>::infinity();

  static at::Tensor widened(const at::Tensor& tensor) {
    return tensor.itemsize() < 4 ? tensor.to(at::kFloat) : tensor;
  }

  /// Repeats keys or values for each head of the query: several of these may share one.
  static at::Tensor grouped(const at::Tensor& tensor, const at::Tensor& query) {
    if (tensor.dim() < 3 || tensor.size(-3) == query.size(-3)) return tensor;
    return tensor.repeat_interleave(query.size(-3) / tensor.size(-3), -3);
  }

  /// The gradient of the input of `grouped`.
  static at::Tensor ungrouped(const at::Tensor& grad, const at::Tensor& tensor) {
    at::Tensor sum = grad;
    if (tensor.dim() >= 3 && tensor.size(-3) != grad.size(-3)) {
      sum = grad.unflatten(-3, {tensor.size(-3), grad.size(-3) / tensor.size(-3)}).sum(-3);
    }
    return sum.to(tensor.scalar_type());
  }

  static at::Tensor number(std::uint64_t value) {
    return at::full({}, static_cast<std::int64_t>(value), at::TensorOptions().dtype(at::kLong));
  }

  /// Zeroes some elements and scales the others; the same state and shape select the same elements.
  static at::Tensor dropped(const at::Tensor& tensor, PhiloxState state, double probability) {
    if (probability <= 0) return tensor;
    if (probability >= 1) return tensor.mul(0);
    const at::Tensor kept = at::empty(tensor.sizes(), tensor.options());
    return tensor.mul(kept.bernoulli_(1 - probability, host_generator(state)))
        .div_(1 - probability);
  }
};

/// The implementation of attention that PyTorch uses on the device: the vendor's fused kernel if
/// there is one and the user allows it; basic operators if the vendor has kernels for them;
/// otherwise the CPU's fused implementation. Takes the arguments of aten::_fused_sdp_choice.
template <class Function>
struct AttentionChoice;

template <class... Arguments>
struct AttentionChoice<std::int64_t (*)(Arguments...)> {
  static std::int64_t choose(Arguments... arguments) {
    constexpr std::int64_t kMath = 0;
    constexpr std::int64_t kOverrideable = 4;
    static const bool fused = has_kernel("_scaled_dot_product_fused_attention_overrideable");
    static const bool small = (has_kernel("bmm") || has_kernel("bmm.out")) &&
                              (has_kernel("_softmax") || has_kernel("_softmax.out"));
    if (fused) return at::globalContext().userEnabledOverrideableSDP() ? kOverrideable : kMath;
    return small ? kMath : at::native::_fused_sdp_choice_cpp(arguments...);
  }
};

/// Registers `AttentionChoice` in both places where PyTorch asks for it.
inline void register_attention_choice(torch::Library& aten) {
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(
      &AttentionChoice<at::native::fused_sdp_choice_fn>::choose);
  register_unless_own(aten, "_fused_sdp_choice",
                      &AttentionChoice<decltype(&at::native::_fused_sdp_choice_cpp)>::choose);
}

}  // namespace backendkit
