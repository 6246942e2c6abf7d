// SPDX-License-Identifier: Apache-2.0
#include "description/torch_names.h"

#include <algorithm>
#include <string>

namespace backendgen {
namespace {

// Public lower-case names of PyTorch 2.5.1, 2.6.0, 2.13.0, 2.14.1 and 2.15.0, sorted. A name that a
// later release adds is found when the backend is imported: PyTorch then refuses to register it.

// clang-format off
constexpr std::string_view kModules[] = {
    "accelerator", "amp", "ao", "autograd", "backends", "classes", "compiler", "contrib", "cpu",
    "cuda", "distributed", "distributions", "export", "fft", "foreach", "func", "functional",
    "futures", "fx", "hub", "jit", "library", "linalg", "masked", "monitor", "mps", "mtia",
    "multiprocessing", "nativert", "nested", "nn", "numa", "onnx", "ops", "optim", "overrides",
    "package", "profiler", "quantization", "quasirandom", "random", "return_types", "serialization",
    "signal", "sparse", "special", "storage", "testing", "torch_version", "types", "utils",
    "version", "windows", "xpu",
};

constexpr std::string_view kAttributes[] = {
    "abs", "abs_", "absolute", "acos", "acos_", "acosh", "acosh_", "adaptive_avg_pool1d",
    "adaptive_max_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addmv_",
    "addr", "adjoint", "affine_grid_generator", "alias_copy", "align_tensors", "all", "allclose",
    "alpha_dropout", "alpha_dropout_", "amax", "amin", "aminmax", "angle", "any", "arange",
    "arccos", "arccos_", "arccosh", "arccosh_", "arcsin", "arcsin_", "arcsinh", "arcsinh_",
    "arctan", "arctan2", "arctan_", "arctanh", "arctanh_", "are_deterministic_algorithms_enabled",
    "argmax", "argmin", "argsort", "argwhere", "as_strided", "as_strided_", "as_strided_copy",
    "as_strided_scatter", "as_tensor", "asarray", "asin", "asin_", "asinh", "asinh_", "atan",
    "atan2", "atan_", "atanh", "atanh_", "atleast_1d", "atleast_2d", "atleast_3d", "autocast",
    "autocast_decrement_nesting", "autocast_increment_nesting", "avg_pool1d", "baddbmm",
    "bartlett_window", "batch_norm", "batch_norm_backward_elemt", "batch_norm_backward_reduce",
    "batch_norm_elemt", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts",
    "batch_norm_stats", "batch_norm_update_stats", "bcomplex32", "bernoulli", "bfloat16",
    "bilinear", "binary_cross_entropy_with_logits", "bincount", "binomial", "bit", "bits16",
    "bits1x8", "bits2x4", "bits4x2", "bits8", "bitwise_and", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm",
    "bool", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "builtins",
    "can_cast", "cartesian_prod", "cat", "ccol_indices_copy", "cdist", "cdouble", "ceil", "ceil_",
    "celu", "celu_", "cfloat", "chain_matmul", "chalf", "channel_shuffle", "channels_last",
    "channels_last_3d", "cholesky", "cholesky_inverse", "cholesky_solve",
    "choose_qparams_optimized", "chunk", "clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min",
    "clamp_min_", "classproperty", "clear_autocast_cache", "clip", "clip_", "clone",
    "col_indices_copy", "column_stack", "combinations", "compile", "compiled_with_cxx11_abi",
    "complex", "complex128", "complex32", "complex64", "concat", "concatenate", "cond", "conj",
    "conj_physical", "conj_physical_", "constant_pad_nd", "contiguous_format", "conv1d", "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "copysign", "corrcoef", "cos", "cos_", "cosh", "cosh_", "cosine_embedding_loss",
    "cosine_similarity", "count_nonzero", "cov", "cpp", "cross", "crow_indices_copy", "ctc_loss",
    "ctypes", "cudnn_affine_grid_generator", "cudnn_batch_norm", "cudnn_convolution",
    "cudnn_convolution_add_relu", "cudnn_convolution_relu", "cudnn_convolution_transpose",
    "cudnn_grid_sampler", "cudnn_is_acceptable", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_trapezoid", "default_generator", "deg2rad", "deg2rad_", "dequantize", "det",
    "detach", "detach_", "detach_copy", "device", "diag", "diag_embed", "diagflat", "diagonal",
    "diagonal_copy", "diagonal_scatter", "diff", "digamma", "dist", "div", "divide", "dot",
    "double", "dropout", "dropout_", "dsmm", "dsplit", "dstack", "dtype", "e", "eig", "einsum",
    "embedding", "embedding_bag", "embedding_renorm_", "empty", "empty_like", "empty_permuted",
    "empty_quantized", "empty_strided", "enable_grad", "eq", "equal", "erf", "erf_", "erfc",
    "erfc_", "erfinv", "exp", "exp2", "exp2_", "exp_", "expand_copy", "expm1", "expm1_", "eye",
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine",
    "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation",
    "fbgemm_linear_quantize_weight", "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix",
    "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
    "fill", "fill_", "finfo", "fix", "fix_", "flatten", "flip", "fliplr", "flipud", "float",
    "float16", "float32", "float4_e2m1fn_x2", "float64", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_power", "floor", "floor_",
    "floor_divide", "fmax", "fmin", "fmod", "fork", "frac", "frac_", "frexp", "frobenius_norm",
    "from_dlpack", "from_file", "from_numpy", "frombuffer", "full", "full_like", "functools",
    "fused_moving_avg_obs_fake_quant", "gather", "gcd", "gcd_", "ge", "geqrf", "ger",
    "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
    "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "get_default_device", "get_default_dtype",
    "get_deterministic_debug_mode", "get_device", "get_device_module", "get_file_path",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads", "get_rng_state",
    "glob", "gradient", "greater", "greater_equal", "grid_sampler", "grid_sampler_2d",
    "grid_sampler_3d", "group_norm", "gru", "gru_cell", "gt", "half", "hamming_window",
    "hann_window", "hardshrink", "has_lapack", "has_mkl", "has_openmp", "has_spectral",
    "hash_tensor", "heaviside", "hinge_embedding_loss", "histc", "histogram", "histogramdd", "hsmm",
    "hsplit", "hspmm", "hstack", "hypot", "i0", "i0_", "igamma", "igammac", "iinfo", "imag",
    "import_ir_module", "import_ir_module_from_buffer", "importlib", "index_add", "index_copy",
    "index_fill", "index_put", "index_put_", "index_reduce", "index_select", "indices_copy", "inf",
    "inference_mode", "init_num_threads", "initial_seed", "inner", "inspect", "instance_norm",
    "int", "int1", "int16", "int2", "int3", "int32", "int4", "int5", "int6", "int64", "int7",
    "int8", "int_repr", "inverse", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "is_complex", "is_conj",
    "is_deterministic_algorithms_warn_only_enabled", "is_distributed", "is_floating_point",
    "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "is_storage", "is_tensor", "is_vulkan_available",
    "is_warn_always_enabled", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "istft", "jagged", "kaiser_window", "kl_div", "kron", "kthvalue",
    "layer_norm", "layout", "lcm", "lcm_", "ldexp", "ldexp_", "le", "legacy_contiguous_format",
    "lerp", "less", "less_equal", "lgamma", "linspace", "load", "lobpcg", "log", "log10", "log10_",
    "log1p", "log1p_", "log2", "log2_", "log_", "log_softmax", "logaddexp", "logaddexp2",
    "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit",
    "logit_", "logspace", "logsumexp", "long", "lstm", "lstm_cell", "lstsq", "lt", "lu", "lu_solve",
    "lu_unpack", "manual_seed", "margin_ranking_loss", "masked_fill", "masked_scatter",
    "masked_select", "math", "matmul", "matrix_exp", "matrix_power", "matrix_rank", "max",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "maximum", "mean",
    "median", "memory_format", "merge_type_from_type_comment", "meshgrid", "min", "minimum",
    "miopen_batch_norm", "miopen_convolution", "miopen_convolution_add_relu",
    "miopen_convolution_relu", "miopen_convolution_transpose", "miopen_ctc_loss",
    "miopen_depthwise_convolution", "miopen_rnn", "mkldnn_adaptive_avg_pool2d",
    "mkldnn_convolution", "mkldnn_linear_backward_weights", "mkldnn_max_pool2d",
    "mkldnn_max_pool3d", "mkldnn_rnn_layer", "mm", "mode", "moveaxis", "movedim", "msort", "mul",
    "multinomial", "multiply", "mv", "mvlgamma", "nan", "nan_to_num", "nan_to_num_", "nanmean",
    "nanmedian", "nanquantile", "nansum", "narrow", "narrow_copy", "native_batch_norm",
    "native_channel_shuffle", "native_dropout", "native_group_norm", "native_layer_norm",
    "native_norm", "ne", "neg", "neg_", "negative", "negative_", "newaxis", "nextafter", "no_grad",
    "nonzero", "nonzero_static", "norm", "norm_except_dim", "normal", "not_equal", "nuclear_norm",
    "numel", "ones", "ones_like", "orgqr", "ormqr", "os", "outer", "pairwise_distance", "parse_ir",
    "parse_schema", "parse_type_comment", "pca_lowrank", "pdist", "per_channel_affine",
    "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine",
    "per_tensor_symmetric", "permute", "permute_copy", "pi", "pinverse", "pixel_shuffle",
    "pixel_unshuffle", "platform", "poisson", "poisson_nll_loss", "polar", "polygamma", "positive",
    "pow", "prelu", "prepare_multiprocessing_environment", "preserve_format", "prod",
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12", "promote_types", "put",
    "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point", "qint32", "qint8", "qr", "qscheme", "quantile", "quantize_per_channel",
    "quantize_per_tensor", "quantize_per_tensor_dynamic", "quantized_batch_norm", "quantized_gru",
    "quantized_gru_cell", "quantized_lstm", "quantized_lstm_cell", "quantized_max_pool1d",
    "quantized_max_pool2d", "quantized_max_pool3d", "quantized_rnn_relu_cell",
    "quantized_rnn_tanh_cell", "quint2x4", "quint4x2", "quint8", "rad2deg", "rad2deg_", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range", "ravel",
    "read_vitals", "real", "reciprocal", "reciprocal_", "relu", "relu_", "remainder", "renorm",
    "repeat_interleave", "reshape", "resize_as_", "resize_as_sparse_", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
    "rnn_tanh_cell", "roll", "rot90", "round", "round_", "row_indices_copy", "row_stack", "rrelu",
    "rrelu_", "rsqrt", "rsqrt_", "rsub", "saddmm", "save", "scalar_tensor", "scatter",
    "scatter_add", "scatter_reduce", "searchsorted", "seed", "segment_reduce", "select",
    "select_copy", "select_scatter", "selu", "selu_", "set_anomaly_enabled",
    "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype",
    "set_autocast_xla_enabled", "set_default_device", "set_default_dtype",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_flush_denormal", "set_grad_enabled", "set_num_interop_threads", "set_num_threads",
    "set_printoptions", "set_rng_state", "set_vital", "set_warn_always", "sgn", "short", "sigmoid",
    "sigmoid_", "sign", "signbit", "sin", "sin_", "sinc", "sinc_", "sinh", "sinh_", "slice_copy",
    "slice_inverse", "slice_scatter", "slogdet", "smm", "softmax", "solve", "sort", "sparse_bsc",
    "sparse_bsc_tensor", "sparse_bsr", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_coo", "sparse_coo_tensor", "sparse_csc", "sparse_csc_tensor", "sparse_csr",
    "sparse_csr_tensor", "split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "spmm",
    "sqrt", "sqrt_", "square", "square_", "squeeze", "squeeze_copy", "sspaddmm", "stack", "std",
    "std_mean", "stft", "strided", "sub", "subtract", "sum", "svd", "svd_lowrank", "swapaxes",
    "swapdims", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float",
    "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
    "symeig", "sys", "t", "t_copy", "take", "take_along_dim", "tan", "tan_", "tanh", "tanh_",
    "tensor", "tensor_split", "tensordot", "textwrap", "thread_safe_generator", "threading",
    "threshold", "threshold_", "tile", "to_dlpack", "topk", "torch", "trace", "transpose",
    "transpose_copy", "trapezoid", "trapz", "triangular_solve", "tril", "tril_indices",
    "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "trunc_", "typename",
    "typing", "typing_extensions", "uint1", "uint16", "uint2", "uint3", "uint32", "uint4", "uint5",
    "uint6", "uint64", "uint7", "uint8", "unbind", "unbind_copy", "unflatten", "unfold_copy",
    "unify_type_list", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_copy",
    "use_deterministic_algorithms", "values_copy", "vander", "var", "var_mean", "vdot",
    "view_as_complex", "view_as_complex_copy", "view_as_real", "view_as_real_copy", "view_copy",
    "vitals_enabled", "vmap", "vsplit", "vstack", "wait", "warnings", "where", "while_loop",
    "xlogy", "xlogy_", "zero_", "zeros", "zeros_like",
};

constexpr std::string_view kTensorAttributes[] = {
    "absolute_", "add_", "addbmm_", "addcdiv_", "addcmul_", "addmm_", "addr_", "align_as",
    "align_to", "apply_", "arctan2_", "as_subclass", "atan2_", "backward", "baddbmm_", "bernoulli_",
    "bitwise_and_", "bitwise_left_shift_", "bitwise_not_", "bitwise_or_", "bitwise_right_shift_",
    "bitwise_xor_", "byte", "cauchy_", "ccol_indices", "char", "coalesce", "col_indices",
    "const_data_ptr", "contiguous", "copy_", "copysign_", "crow_indices", "cumprod_", "cumsum_",
    "data", "data_ptr", "dense_dim", "digamma_", "dim", "dim_order", "div_", "divide_",
    "element_size", "eq_", "erfinv_", "expand", "expand_as", "exponential_", "fill_diagonal_",
    "float_power_", "floor_divide_", "fmod_", "ge_", "geometric_", "grad", "grad_dtype", "grad_fn",
    "greater_", "greater_equal_", "gt_", "has_names", "heaviside_", "hypot_", "igamma_", "igammac_",
    "index", "index_add_", "index_copy_", "index_fill_", "index_reduce_", "indices", "ipu",
    "is_coalesced", "is_contiguous", "is_cpu", "is_cuda", "is_ipu", "is_leaf", "is_maia", "is_meta",
    "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_pinned", "is_quantized", "is_set_to",
    "is_shared", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "item", "itemsize",
    "le_", "lerp_", "less_", "less_equal_", "lgamma_", "log_normal_", "logical_and_",
    "logical_not_", "logical_or_", "logical_xor_", "lt_", "map2_", "map_", "masked_fill_",
    "masked_scatter_", "module_load", "mul_", "multiply_", "mvlgamma_", "name", "names", "nbytes",
    "ndim", "ndimension", "ne_", "nelement", "new", "new_empty", "new_empty_strided", "new_full",
    "new_ones", "new_tensor", "new_zeros", "nextafter_", "normal_", "not_equal_", "numpy",
    "output_nr", "pin_memory", "polygamma_", "pow_", "put_", "random_", "record_stream",
    "refine_names", "register_hook", "register_post_accumulate_grad_hook", "reinforce",
    "remainder_", "rename", "rename_", "renorm_", "repeat", "requires_grad", "requires_grad_",
    "reshape_as", "resize", "resize_", "resize_as", "retain_grad", "retains_grad", "row_indices",
    "scatter_", "scatter_add_", "scatter_reduce_", "set_", "sgn_", "shape", "share_memory_",
    "sign_", "size", "sparse_dim", "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_",
    "squeeze_", "storage_offset", "storage_type", "stride", "sub_", "subtract_", "sum_to_size",
    "swapaxes_", "swapdims_", "t_", "to", "to_dense", "to_mkldnn", "to_padded_tensor", "to_sparse",
    "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "tolist",
    "transpose_", "tril_", "triu_", "true_divide_", "type", "type_as", "unfold", "uniform_",
    "unsqueeze_", "untyped_storage", "values", "view", "view_as", "volatile",
};

constexpr std::string_view kModuleAttributes[] = {
    "add_module", "apply", "buffers", "call_super_init", "children", "dump_patches", "eval",
    "extra_repr", "forward", "get_buffer", "get_extra_state", "get_parameter", "get_submodule",
    "load_state_dict", "modules", "named_buffers", "named_children", "named_modules",
    "named_parameters", "parameters", "register_backward_hook", "register_buffer",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "set_extra_state",
    "set_submodule", "share_memory", "state_dict", "to_empty", "train", "zero_grad",
};

constexpr std::string_view kStorageAttributes[] = {
    "batch_sizes", "byteswap", "complex_double", "complex_float", "count", "filename",
    "from_buffer", "hpu", "is_hpu", "pickle_storage_type", "resizable", "sorted_indices",
    "unsorted_indices", "untyped",
};
// clang-format on

}  // namespace

std::optional<TorchName> find_torch_name(std::string_view name) {
  std::string text(name);
  std::string question = "is_" + text;
  if (std::ranges::binary_search(kModules, name)) return TorchName{"torch." + text, "a module"};
  if (std::ranges::binary_search(kAttributes, name)) return TorchName{"torch." + text, "a name"};
  if (std::ranges::binary_search(kTensorAttributes, name))
    return TorchName{"torch.Tensor." + text, "a name"};
  if (std::ranges::binary_search(kTensorAttributes, question))
    return TorchName{"torch.Tensor." + question, "a name"};
  if (std::ranges::binary_search(kModuleAttributes, name))
    return TorchName{"torch.nn.Module." + text, "a name"};
  if (std::ranges::binary_search(kStorageAttributes, name))
    return TorchName{"torch.Storage." + text, "a name"};
  return std::nullopt;
}

}  // namespace backendgen
