// SPDX-License-Identifier: Apache-2.0
#include "torch/autocast_lists.h"

namespace backendgen {
namespace {

// A test compares these with the headers of the PyTorch that is installed.

// clang-format off
constexpr std::string_view kLowerPrecisionFp[] = {
    "_convolution.deprecated", "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "convolution", "prelu",
    "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm",
    "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell",
    "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "_scaled_dot_product_flash_attention", "scaled_dot_product_attention",
};
constexpr std::string_view kFp32[] = {
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p",
    "reciprocal", "rsqrt", "sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar",
    "softplus", "layer_norm", "native_layer_norm", "group_norm", "frobenius_norm.dim",
    "nuclear_norm", "nuclear_norm.dim", "cosine_similarity", "poisson_nll_loss",
    "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss",
    "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_nearest2d",
    "_upsample_nearest_exact2d", "upsample_nearest3d", "_upsample_nearest_exact3d",
    "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_trilinear3d",
    "upsample_bicubic2d", "_upsample_bicubic2d_aa", "rms_norm", "linalg_matrix_sqrth",
};
constexpr std::string_view kFp32SetOptDtype[] = {
    "prod", "prod.dim_int", "prod.dim_Dimname", "softmax.int", "softmax.Dimname",
    "log_softmax.int", "log_softmax.Dimname", "cumprod", "cumprod.dimname", "cumsum",
    "cumsum.dimname", "linalg_vector_norm", "linalg_matrix_norm", "linalg_matrix_norm.str_ord",
    "sum", "sum.dim_IntList", "sum.dim_DimnameList", "norm.Scalar", "norm.ScalarOpt_dim",
    "norm.names_ScalarOpt_dim",
};
constexpr std::string_view kPromote[] = {
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
    "tensordot", "scatter_add",
};
// clang-format on

}  // namespace

const char* policy_key(CastPolicy policy) {
  switch (policy) {
    case CastPolicy::kLowerPrecisionFp:
      return "lower_precision_fp";
    case CastPolicy::kFp32:
      return "fp32";
    case CastPolicy::kFp32SetOptDtype:
      return "fp32_set_opt_dtype";
    case CastPolicy::kPromote:
      break;
  }
  return "promote";
}

std::span<const std::string_view> usual_autocast_list(CastPolicy policy) {
  switch (policy) {
    case CastPolicy::kLowerPrecisionFp:
      return kLowerPrecisionFp;
    case CastPolicy::kFp32:
      return kFp32;
    case CastPolicy::kFp32SetOptDtype:
      return kFp32SetOptDtype;
    case CastPolicy::kPromote:
      break;
  }
  return kPromote;
}

bool is_usual_in(std::string_view op, const TorchVersion& release) {
  return op != "rms_norm" || release >= TorchVersion{2, 12, 0};
}

}  // namespace backendgen
