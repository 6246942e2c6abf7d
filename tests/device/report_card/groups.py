# SPDX-License-Identifier: Apache-2.0
"""Groups of operators that a person would look for: those of `backendgen ops`."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

#: The table of generator/ops/groups.cpp: key, title, and rules for the names of operators without
#: underscores around them. The first group with a rule for a name has it.
GROUPS = [
    (
        "elementwise",
        "Elementwise math",
        "add_relu absolute divide multiply subtract true_divide floor_divide fix negative "
        "arc* masked_fill where real imag conj chalf conj_physical angle sgn complex polar "
        "isclose clip deg2rad rad2deg copysign",
    ),
    (
        "comparison",
        "Comparison and logic",
        "eq ne ge gt le lt equal not_equal greater greater_equal less less_equal allclose and "
        "or xor bitwise_* logical_* lshift rshift isnan isinf isfinite isposinf isneginf "
        "isreal isin signbit",
    ),
    (
        "activation",
        "Activations",
        "relu relu6 rrelu rrelu_with_noise* gelu* elu* celu selu silu* mish* glu* sigmoid* "
        "hardswish* hardsigmoid* hardtanh* hardshrink* softshrink* softplus* leaky_relu* "
        "threshold* prelu* log_sigmoid* softmax* log_softmax* safe_softmax masked_softmax* "
        "tanh_backward logit_backward infinitely_differentiable_gelu_backward",
    ),
    (
        "reduction",
        "Reductions and scans",
        "sum sum_to_size mean nansum nanmean median nanmedian prod std std_mean var var_mean "
        "all any is_all_true is_any_true amax amin aminmax argmax argmin max min mode norm "
        "logsumexp cumsum cumprod* cummax* cummin* cummaxmin* logcumsumexp count_nonzero dist "
        "kthvalue quantile value_selecting_reduction_backward nanquantile segment_reduce* "
        "norm_except_dim cumulative_trapezoid trapezoid trapz renorm hash_tensor diff "
        "gradient cov corrcoef frobenius_norm nuclear_norm",
    ),
    (
        "sorting",
        "Sorting, searching and counting",
        "sort msort argsort topk unique* searchsorted bucketize bincount histc histogram* "
        "nonzero* argwhere",
    ),
    (
        "matrix",
        "Matrix products",
        "mm bmm baddbmm addmm addmm_activation addmv addbmm addr mv dot vdot matmul "
        "matmul_backward linear linear_backward bilinear trilinear einsum tensordot inner "
        "outer ger kron chain_matmul scaled_*mm* grouped_mm int_mm compute_linear_combination "
        "cdist* pdist* euclidean_dist pairwise_distance cosine_similarity linalg_matmul "
        "linalg_vecdot linalg_multi_dot mixed_dtypes_linear",
    ),
    (
        "linalg",
        "Linear algebra",
        "linalg_* cholesky* lu_* qr svd geqrf orgqr ormqr triangular_solve det logdet slogdet "
        "inverse pinverse matrix_exp* matrix_power cross trace trace_backward",
    ),
    (
        "convolution",
        "Convolution",
        "convolution* conv1d conv2d conv3d conv_* slow_conv* thnn_conv* col2im im2col",
    ),
    (
        "pooling",
        "Pooling",
        "max_pool* avg_pool* adaptive_* fractional_max_pool* max_unpool*",
    ),
    (
        "normalisation",
        "Normalisation",
        "batch_norm* native_batch_norm* group_norm native_group_norm* layer_norm "
        "native_layer_norm* instance_norm rms_norm fused_rms_norm* weight_norm*",
    ),
    (
        "loss",
        "Losses",
        "*_embedding_loss *_ranking_loss *margin_loss* poisson_nll_loss cross_entropy_loss "
        "mse_loss* l1_loss smooth_l1_loss* huber_loss* nll_loss* ctc_loss* kl_div "
        "binary_cross_entropy*",
    ),
    (
        "attention",
        "Attention",
        "scaled_dot_product_attention scaled_dot_product_attention_math "
        "scaled_dot_product_flash_* scaled_dot_product_efficient_* scaled_dot_product_fused_* "
        "flash_attention_* efficient_attention_* fused_sdp_choice transformer_* "
        "native_multi_head_* transform_bias_rescale_qkv fill_mem_eff_dropout_mask",
    ),
    (
        "vision",
        "Padding and resampling",
        "upsample_* grid_sampler* affine_grid_generator* *pad1d* *pad2d* *pad3d* pad "
        "pad_circular pad_enum constant_pad_nd pixel_* *channel_shuffle",
    ),
    (
        "embedding",
        "Embedding",
        "embedding* rowwise_prune one_hot",
    ),
    (
        "indexing",
        "Indexing",
        "index index_* unsafe_index unsafe_index_put unsafe_masked_* gather* scatter* take* "
        "put masked_select* masked_scatter* select_backward slice_backward diagonal_backward "
        "unfold_backward *_scatter slice_inverse",
    ),
    (
        "shape",
        "Shapes, views and joining",
        "view view_* reshape* unsafe_view expand* permute* transpose* t t_copy squeeze* "
        "unsqueeze* select select_copy slice slice_copy narrow* split* unsafe_split* chunk* "
        "unsafe_chunk tensor_split hsplit vsplit dsplit cat concat* stack hstack vstack "
        "dstack row_stack column_stack unbind* flatten unflatten ravel movedim moveaxis swap* "
        "diagonal diagonal_copy diag diag_embed diagflat fill_diagonal flip* roll rot90 tile "
        "repeat* broadcast_* atleast_* block_diag meshgrid cartesian_prod combinations "
        "as_strided* unfold* numpy_T matrix_H mT mH adjoint tril triu alias* conj_copy "
        "neg_view* rename align_* refine_names",
    ),
    (
        "creation",
        "Creation",
        "empty empty_like empty_permuted empty_strided new_* zeros* ones* full* arange range "
        "linspace logspace eye scalar_tensor from_file tril_indices triu_indices vander "
        "efficientzerotensor dim_arange lazy_clone",
    ),
    (
        "copy",
        "Copy, dtype and memory",
        "copy copy_from* to to_copy to_cpu clone contiguous fill zero cast_* type_as "
        "autocast_* item local_scalar_dense lift* detach* resolve_* resize resize_as "
        "resize_output set set_data pin_memory record_stream",
    ),
    (
        "random",
        "Random numbers and dropout",
        "rand rand_* randint* randn* randperm random uniform normal cauchy log_normal "
        "exponential geometric bernoulli binomial poisson multinomial dropout feature_* "
        "alpha_dropout fused_dropout native_dropout* *dirichlet* standard_gamma* philox_* "
        "sobol_* masked_scale",
    ),
    (
        "rnn",
        "Recurrent networks",
        "lstm lstm_cell gru gru_cell rnn_* thnn_fused_* thnn_differentiable_* pack_padded_* "
        "pad_packed_sequence pad_sequence",
    ),
    (
        "optimizer",
        "Optimizers and lists of tensors",
        "foreach_* fused_adam fused_adamw fused_sgd fused_adagrad amp_* flatten_dense_tensors "
        "unflatten_dense_tensors",
    ),
    (
        "sparse",
        "Sparse tensors",
        "*sparse* *_csr* *_coo* coalesce* is_coalesced indices indices_copy values "
        "values_copy nnz crow_indices* col_indices* ccol_indices* row_indices* dense_dim dimI "
        "dimV hspmm smm cslt_* sspaddmm spdiags spsolve to_dense* native_norm",
    ),
    (
        "quantized",
        "Quantization",
        "*quantize* *fake_quant* *fq_helper *qparams* q_* qscheme int_repr *pack_mm* "
        "*int4pack* dyn_quant_* wrapped_* saturate_weight* fbgemm_*",
    ),
    (
        "nested",
        "Nested and jagged tensors",
        "*nested* *jagged* to_padded_tensor",
    ),
    (
        "fft",
        "Fourier transforms and windows",
        "fft_* stft istft *_window",
    ),
    (
        "special",
        "Special functions",
        "special_* digamma lgamma mvlgamma polygamma erf erfc erfinv i0 igamma igammac sinc "
        "xlogy logit",
    ),
    (
        "vendor",
        "Libraries of other devices",
        "*cudnn* *miopen* *mkldnn* *mps mps_* lstm_mps* nnpack_* *vulkan* cufft_* *xla* triton_*",
    ),
    (
        "properties",
        "Properties and autograd",
        "is_* size stride dim numel sym_* storage_offset get_device shape_as_tensor "
        "result_type can_cast promote_types data output_nr version requires_grad retain* "
        "backward fw_primal* make_dual* unpack_dual has_* *assert* functional_* print "
        "*dep_token* debug_* *batch_dim",
    ),
    (
        "other",
        "Other",
        "",
    ),
]


def root_of(name: str) -> str:
    """What the variants of an operator share: `add` of `add_.Tensor`, `__and__` of `__iand__`."""
    base = name.partition(".")[0]
    if base.startswith("__") and base.endswith("__"):
        augmented = base.startswith("__i") and base not in ("__index__", "__invert__")
        return f"__{base[3:]}" if augmented else base
    for ending in ("_", "_functional"):
        if base.endswith(ending) and base != ending:
            return base[: -len(ending)]
    return base


def group_operators(operators: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """The group's key of each root, from names of operators and whether PyTorch says that they are
    pointwise. The variants of an operator are in one group."""
    pointwise: dict[str, bool] = {}
    for name, tagged in operators:
        root = root_of(name)
        pointwise[root] = pointwise.get(root, False) or tagged
    return {root: _group_of(root, tagged) for root, tagged in pointwise.items()}


def _group_of(root: str, pointwise: bool) -> str:
    bare = root.strip("_")
    for key, _, rules in GROUPS:
        if any(fnmatch.fnmatchcase(bare, rule) for rule in rules.split()):
            return key
    return "elementwise" if pointwise else "other"
