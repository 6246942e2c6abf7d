// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <forward_list>
#include <optional>
#include <utility>
#include <vector>

// Without this, ATen/ExpandUtils.h includes all operators of PyTorch.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/ExpandUtils.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

namespace backendkit {

/// Contiguous versions of a kernel's tensors, which live as long as this object. Tensors that are
/// already contiguous are passed on as they are.
class DenseTensors {
 public:
  const at::Tensor& contiguous(const at::Tensor& tensor) {
    if (!tensor.defined() || is_plain(tensor)) return tensor;
    return hold(tensor.resolve_conj().resolve_neg().contiguous());
  }

  at::OptionalTensorRef contiguous(const at::OptionalTensorRef& tensor) {
    return tensor.has_value() ? at::OptionalTensorRef(contiguous(*tensor)) : tensor;
  }

  std::optional<at::Tensor> contiguous(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() ? std::optional<at::Tensor>(contiguous(*tensor)) : tensor;
  }

  at::TensorList contiguous(at::TensorList list) { return hold_list(list); }

  at::ITensorListRef contiguous(const at::ITensorListRef& list) { return hold_list(list); }

  c10::List<std::optional<at::Tensor>> contiguous(
      const c10::List<std::optional<at::Tensor>>& list) {
    c10::List<std::optional<at::Tensor>> dense;
    for (std::size_t i = 0; i < list.size(); ++i) {
      dense.push_back(contiguous(std::optional<at::Tensor>(list[i])));
    }
    return dense;
  }

  /// Indices as integers, all of one shape: a mask becomes the indices of its true elements.
  at::IOptTensorListRef contiguous(const at::IOptTensorListRef& list) {
    std::vector<at::Tensor> places;
    for (const at::OptionalTensorRef& one : list) {
      if (!one.has_value()) {
        places.emplace_back();
      } else if (one->scalar_type() == at::kBool || one->scalar_type() == at::kByte) {
        const at::Tensor where = one->nonzero();
        for (std::int64_t i = 0; i < one->dim(); ++i) places.push_back(where.select(1, i));
      } else {
        places.push_back(one->to(at::kLong));
      }
    }
    c10::List<std::optional<at::Tensor>> dense;
    for (const at::Tensor& one : at::expand_outplace(places)) {
      dense.push_back(one.defined() ? std::optional<at::Tensor>(one.contiguous()) : std::nullopt);
    }
    optional_lists_.push_front(std::move(dense));
    return at::IOptTensorListRef(optional_lists_.front());
  }

  /// The same for arguments that are not tensors.
  template <class Value>
  requires(!std::is_base_of_v<at::TensorBase, Value>) const Value& contiguous(const Value& value) {
    return value;
  }

  const at::Tensor& hold(at::Tensor tensor) {
    held_.push_front(std::move(tensor));
    return held_.front();
  }

  /// Whether a tensor's memory is exactly its elements, one after another.
  static bool is_plain(const at::Tensor& tensor) {
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  }

 private:
  template <class List>
  at::TensorList hold_list(const List& list) {
    std::vector<at::Tensor> dense;
    dense.reserve(list.size());
    for (const at::Tensor& tensor : list) dense.push_back(contiguous(tensor));
    lists_.push_front(std::move(dense));
    return lists_.front();
  }

  std::forward_list<at::Tensor> held_;
  std::forward_list<std::vector<at::Tensor>> lists_;
  std::forward_list<c10::List<std::optional<at::Tensor>>> optional_lists_;
};

}  // namespace backendkit
