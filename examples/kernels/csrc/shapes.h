#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>

namespace foo {

/// A tensor seen along one dimension: element (i, k, j) has the number (i * size + k) * inner + j.
struct Along {
  Along(const at::Tensor& tensor, std::int64_t dim) {
    if (tensor.dim() == 0) return;
    dim = c10::maybe_wrap_dim(dim, tensor.dim());
    for (std::int64_t i = 0; i < dim; ++i) outer *= tensor.size(i);
    size = tensor.size(dim);
    for (std::int64_t i = dim + 1; i < tensor.dim(); ++i) inner *= tensor.size(i);
  }

  std::int64_t number(std::int64_t i, std::int64_t k, std::int64_t j) const {
    return (i * size + k) * inner + j;
  }

  /// Calls `body(i, j)` for every line along the dimension.
  template <class Body>
  void lines(const Body& body) const {
    for (std::int64_t i = 0; i < outer; ++i) {
      for (std::int64_t j = 0; j < inner; ++j) body(i, j);
    }
  }

  std::int64_t outer = 1, size = 1, inner = 1;
};

/// Calls `body(number, place)` for the elements of a tensor of these sizes, row by row; `place` is
/// the sum over the dimensions of the element's position times the stride.
template <class Body>
void each_place(at::IntArrayRef sizes, const std::vector<std::int64_t>& strides, const Body& body) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  std::vector<std::int64_t> position(sizes.size(), 0);
  std::int64_t place = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    body(number, place, position);
    for (std::size_t i = sizes.size(); i-- > 0;) {
      place += strides[i];
      if (++position[i] < sizes[i]) break;
      place -= strides[i] * sizes[i];
      position[i] = 0;
    }
  }
}

/// The strides of a contiguous tensor of these sizes.
inline std::vector<std::int64_t> plain_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

}  // namespace foo
