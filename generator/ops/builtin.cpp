// SPDX-License-Identifier: Apache-2.0
#include "ops/builtin.h"

#include <algorithm>

namespace backendgen {

namespace {

/// A test compares these lists with what the headers register.
// clang-format off
constexpr std::string_view kBuiltIn[] = {
    "_copy_from", "_copy_from_and_resize", "_fused_sdp_choice",
    "_has_compatible_shallow_copy_type", "_lazy_clone", "_local_scalar_dense", "_reshape_alias",
    "_to_copy", "as_strided", "empty.memory_format", "empty_strided", "record_stream", "resize_",
    "set_", "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor",
    "unfold", "view", "view_as_complex", "view_as_real",
};

constexpr std::string_view kHosted[] = {
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward", "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward", "_thnn_fused_lstm_cell",
    "_thnn_fused_lstm_cell_backward_impl", "batch_norm_backward_elemt",
    "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_elemt.out",
    "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts", "batch_norm_stats",
    "conj_physical_", "convolution_backward_overrideable", "convolution_overrideable",
    "kaiser_window", "kaiser_window.beta", "kaiser_window.periodic",
    "mse_loss", "native_dropout", "smooth_l1_loss",
};
// clang-format on

constexpr Composite kComposites[] = {
    {"_stack", {"cat"}},
    {"_stack.out", {"cat.out"}},
    {"addr"},
    {"addr.out"},
    {"addr_"},
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

}  // namespace

std::span<const std::string_view> builtin_operators() {
  return kBuiltIn;
}

std::span<const std::string_view> hosted_operators() {
  return kHosted;
}

std::span<const Composite> composite_operators() {
  return kComposites;
}

bool is_builtin(std::string_view op) {
  return std::binary_search(std::begin(kBuiltIn), std::end(kBuiltIn), op);
}

bool is_hosted(std::string_view op) {
  return std::binary_search(std::begin(kHosted), std::end(kHosted), op);
}

const Composite* find_composite(std::string_view op) {
  const auto* const found = std::ranges::lower_bound(kComposites, op, {}, &Composite::op);
  return found != std::end(kComposites) && found->op == op ? found : nullptr;
}

}  // namespace backendgen
