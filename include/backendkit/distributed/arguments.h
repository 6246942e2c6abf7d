// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <backendkit/distributed/c10d.h>

namespace backendkit {

/// Checks the arguments of a group's collectives. Each function throws ValueError.
class GroupArguments {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;
  using Sizes = std::vector<std::int64_t>;

  GroupArguments(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// What a list contains for the only device of a process.
  template <class T>
  static const T& only(const std::vector<T>& all) {
    TORCH_CHECK_VALUE(all.size() == 1, "a process group takes the tensors of one device, not of ",
                      all.size());
    return all[0];
  }

  /// A list with one tensor for each rank.
  const Tensors& parts(const Tensors& tensors) const {
    count(tensors.size(), "tensors");
    return tensors;
  }

  /// The list that the root has, and nobody else.
  Tensors on_root(bool root, const Lists& lists, const char* what) const {
    if (root) return parts(only(lists));
    TORCH_CHECK_VALUE(lists.empty() || lists[0].empty(), "only the root may have ", what);
    return {};
  }

  bool is_root(std::int64_t root) const {
    TORCH_CHECK_VALUE(root >= 0 && root < size_, "there is no rank ", root, " in a group of ",
                      size_);
    return root == rank_;
  }

  void partner(int rank) const {
    TORCH_CHECK_VALUE(rank >= 0 && rank < size_ && rank != rank_, "rank ", rank_, " of ", size_,
                      " cannot exchange messages with rank ", rank);
  }

  void count(std::size_t count, const char* what) const {
    TORCH_CHECK_VALUE(count == static_cast<std::size_t>(size_), "expected ", size_, " ", what,
                      ", one for each rank, not ", count);
  }

  static void pairs(const Tensors& outputs, const Tensors& inputs) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "there are ", inputs.size(), " inputs, but ",
                      outputs.size(), " outputs");
  }

  static void same_dtype(const at::Tensor& output, const at::Tensor& input) {
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(), "the output has dtype ",
                      output.scalar_type(), ", but the input has ", input.scalar_type());
  }

  static void same(const at::Tensor& output, const at::Tensor& input) {
    same_dtype(output, input);
    TORCH_CHECK_VALUE(output.numel() == input.numel(), "the output has ", output.numel(),
                      " elements, but the input has ", input.numel());
  }

  /// `whole` has as many elements as one `part` for each rank.
  void whole_of(const at::Tensor& whole, const at::Tensor& part, const char* name) const {
    same_dtype(whole, part);
    TORCH_CHECK_VALUE(whole.numel() == part.numel() * size_, "the ", name, " must have ",
                      part.numel() * size_, " elements, ", part.numel(), " for each of ", size_,
                      " ranks, not ", whole.numel());
  }

  /// The bytes of each rank's part of a tensor that is split along its first dimension; equal parts
  /// if no sizes are given.
  Sizes split(const at::Tensor& tensor, const Sizes& rows_of_parts) const {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (rows_of_parts.empty()) {
      TORCH_CHECK_VALUE(rows % size_ == 0, "the first dimension, ", rows, ", cannot be split into ",
                        size_, " equal parts");
      return Sizes(static_cast<std::size_t>(size_), bytes / size_);
    }
    count(rows_of_parts.size(), "split sizes");
    const auto sum = std::accumulate(rows_of_parts.begin(), rows_of_parts.end(), std::int64_t{0});
    TORCH_CHECK_VALUE(sum == rows, "the split sizes add up to ", sum, ", but the tensor has ", rows,
                      " rows");
    Sizes all;
    for (const std::int64_t one : rows_of_parts) all.push_back(rows == 0 ? 0 : bytes / rows * one);
    return all;
  }

 private:
  int rank_;
  int size_;
};

}  // namespace backendkit
