// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace backendkit {

/// The cells of LSTM and GRU. PyTorch calls each as one operator on every device except the CPU, so
/// the CPU has no kernel to fall back to. These functions compute them on CPU tensors, step by
/// step.
class RecurrentCells {
 public:
  /// aten::_thnn_fused_lstm_cell: the new hidden and cell states, and the gates for the backward
  /// pass.
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(
      const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cell,
      const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
    const auto gates =
        with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
    const at::Tensor in = gates[0].sigmoid();
    const at::Tensor forget = gates[1].sigmoid();
    const at::Tensor fresh = gates[2].tanh();
    const at::Tensor out = gates[3].sigmoid();
    const at::Tensor new_cell = forget.mul(cell).add(in.mul(fresh));
    return {out.mul(new_cell.tanh()), new_cell, at::cat({in, forget, fresh, out}, 1)};
  }

  /// aten::_thnn_fused_lstm_cell_backward_impl: gradients of the gates, of the cell state and of a
  /// bias.
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_backward(
      const std::optional<at::Tensor>& grad_hidden, const std::optional<at::Tensor>& grad_cell,
      const at::Tensor& cell, const at::Tensor& new_cell, const at::Tensor& workspace,
      bool has_bias) {
    if (!is_there(grad_hidden) && !is_there(grad_cell)) return {};
    const auto gates = workspace.chunk(4, 1);
    const at::Tensor& in = gates[0];
    const at::Tensor& forget = gates[1];
    const at::Tensor& fresh = gates[2];
    const at::Tensor& out = gates[3];
    const at::Tensor squashed = new_cell.tanh();
    const at::Tensor grad = is_there(grad_hidden) ? *grad_hidden : at::zeros_like(squashed);
    at::Tensor grad_new_cell = grad.mul(out).mul(slope_of_tanh(squashed));
    if (is_there(grad_cell)) grad_new_cell = grad_new_cell.add(*grad_cell);
    const at::Tensor grad_gates = at::cat({grad_new_cell.mul(fresh).mul(slope_of_sigmoid(in)),
                                           grad_new_cell.mul(cell).mul(slope_of_sigmoid(forget)),
                                           grad_new_cell.mul(in).mul(slope_of_tanh(fresh)),
                                           grad.mul(squashed).mul(slope_of_sigmoid(out))},
                                          1);
    return {grad_gates, grad_new_cell.mul(forget), has_bias ? grad_gates.sum(0) : at::Tensor()};
  }

  /// aten::_thnn_fused_gru_cell: the new hidden state, and what the backward pass needs.
  static std::tuple<at::Tensor, at::Tensor> gru(const at::Tensor& input_gates,
                                                const at::Tensor& hidden_gates,
                                                const at::Tensor& hidden,
                                                const std::optional<at::Tensor>& input_bias,
                                                const std::optional<at::Tensor>& hidden_bias) {
    const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
    const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
    const at::Tensor before = hidden;
    const at::Tensor reset = from_input[0].add(from_hidden[0]).sigmoid();
    const at::Tensor keep = from_input[1].add(from_hidden[1]).sigmoid();
    const at::Tensor fresh = from_input[2].add(reset.mul(from_hidden[2])).tanh();
    return {fresh.add(keep.mul(before.sub(fresh))),
            at::cat({reset, keep, fresh, before, from_hidden[2]}, 1)};
  }

  /// aten::_thnn_fused_gru_cell_backward: gradients of both gates, of the hidden state, of both
  /// biases.
  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_backward(
      const at::Tensor& grad_hidden, const at::Tensor& workspace, bool has_bias) {
    const auto saved = workspace.chunk(5, 1);
    const at::Tensor& reset = saved[0];
    const at::Tensor& keep = saved[1];
    const at::Tensor& fresh = saved[2];
    const at::Tensor grad = grad_hidden;
    const at::Tensor grad_keep = grad.mul(saved[3].sub(fresh)).mul(slope_of_sigmoid(keep));
    const at::Tensor grad_fresh = grad.sub(grad.mul(keep)).mul(slope_of_tanh(fresh));
    const at::Tensor grad_reset = grad_fresh.mul(saved[4]).mul(slope_of_sigmoid(reset));
    const at::Tensor of_input = at::cat({grad_reset, grad_keep, grad_fresh}, 1);
    const at::Tensor of_hidden = at::cat({grad_reset, grad_keep, grad_fresh.mul(reset)}, 1);
    return {of_input, of_hidden, grad.mul(keep), has_bias ? of_input.sum(0) : at::Tensor(),
            has_bias ? of_hidden.sum(0) : at::Tensor()};
  }

 private:
  static bool is_there(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() && tensor->defined();
  }

  static at::Tensor with_bias(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
    return is_there(bias) ? gates.add(*bias) : gates;
  }

  /// The derivatives, computed from the functions' values.
  static at::Tensor slope_of_sigmoid(const at::Tensor& value) { return value.sub(value.square()); }
  static at::Tensor slope_of_tanh(const at::Tensor& value) { return value.square().neg().add(1); }
};

}  // namespace backendkit
