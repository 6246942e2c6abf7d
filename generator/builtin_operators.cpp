// SPDX-License-Identifier: Apache-2.0
#include "builtin_operators.h"

#include <algorithm>

namespace backendgen {

namespace {

/// A test compares this list with what the headers register.
constexpr std::string_view kNames[] = {
    "_copy_from",
    "_copy_from_and_resize",
    "_local_scalar_dense",
    "_reshape_alias",
    "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward",
    "_thnn_fused_lstm_cell",
    "_thnn_fused_lstm_cell_backward_impl",
    "as_strided",
    "convolution_backward_overrideable",
    "convolution_overrideable",
    "empty.memory_format",
    "empty_strided",
    "mse_loss",
    "native_dropout",
    "record_stream",
    "resize_",
    "set_",
    "set_.source_Storage",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
    "smooth_l1_loss",
    "unfold",
    "view",
    "view_as_complex",
    "view_as_real",
};

}  // namespace

std::span<const std::string_view> builtin_operators() {
  return kNames;
}

bool is_builtin(std::string_view op) {
  return std::binary_search(std::begin(kNames), std::end(kNames), op);
}

}  // namespace backendgen
