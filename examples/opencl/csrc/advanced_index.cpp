#include "advanced_index.h"

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>
#include <c10/util/accumulate.h>

namespace ocl {

namespace {

/// The tensor with so many dimensions as one, if that is a view of it; else the tensor.
at::Tensor with_one_dimension(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  at::DimVector sizes(tensor.sizes());
  auto* const begin = sizes.begin() + first;
  *begin = c10::multiply_integers(begin, begin + count);
  sizes.erase(begin + 1, begin + count);
  const auto strides = at::detail::computeStride(tensor.sizes(), tensor.strides(), sizes);
  return strides.has_value() ? tensor.as_strided(sizes, *strides) : tensor;
}

/// Masks as the places of their true elements: an index for each dimension of the mask, or one
/// where these can be one dimension of `self`, which they are then.
std::vector<at::Tensor> without_masks(at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const at::Tensor tensor = self;
  std::vector<at::Tensor> all;
  std::int64_t place = 0;  // in the tensor's dimensions
  for (const at::Tensor& index : indices) {
    if (!index.defined() ||
        (index.scalar_type() != at::kBool && index.scalar_type() != at::kByte)) {
      all.push_back(index.defined() ? index.to(self.device(), at::kLong) : index);
      ++place;
      continue;
    }
    for (std::int64_t dim = 0; dim < index.dim(); ++dim, ++place) {
      TORCH_CHECK_INDEX(place < tensor.dim() && index.size(dim) == tensor.size(place),
                        "The shape of the mask ", index.sizes(), " at index ", dim,
                        " does not match the shape of the indexed tensor ", tensor.sizes(),
                        " at index ", place);
    }
    at::Tensor mask = index.to(self.device());
    if (mask.dim() > 1) {
      const std::int64_t before = self.dim();
      self = with_one_dimension(self, static_cast<std::int64_t>(all.size()), mask.dim());
      if (self.dim() < before) mask = mask.flatten();
    }
    const at::Tensor places = mask.nonzero();
    for (std::int64_t dim = 0; dim < mask.dim(); ++dim) all.push_back(places.select(1, dim));
  }
  TORCH_CHECK_INDEX(place <= tensor.dim(), "too many indices for tensor of dimension ",
                    tensor.dim(), " (got ", place, ")");
  return all;
}

/// Gives all indices one shape, which it returns.
at::DimVector broadcast(std::vector<at::Tensor>& indices) {
  at::DimVector shape;
  std::ostringstream shapes;
  for (const at::Tensor& index : indices) {
    if (index.defined()) shapes << (shapes.tellp() == 0 ? "" : ", ") << index.sizes();
  }
  for (const at::Tensor& index : indices) {
    if (!index.defined()) continue;
    const bool fits = at::are_expandable(shape, index.sizes());
    TORCH_CHECK_INDEX(fits, "shape mismatch: indexing tensors could not be broadcast together ",
                      "with shapes ", shapes.str());
    shape = at::infer_size_dimvector(shape, index.sizes());
  }
  for (at::Tensor& index : indices) {
    if (index.defined()) index = index.expand(shape);
  }
  return shape;
}

}  // namespace

Chosen chosen_by(const at::Tensor& tensor, const std::vector<at::Tensor>& given) {
  at::Tensor self = tensor;
  std::vector<at::Tensor> indices = without_masks(self, given);
  indices.resize(static_cast<std::size_t>(self.dim()));
  const at::DimVector shape = broadcast(indices);

  // The dimensions of the indices stand where the first of them was, or in front if they are apart.
  std::int64_t first = self.dim(), last = -1, count = 0;
  for (std::int64_t dim = 0; dim < self.dim(); ++dim) {
    if (!indices[static_cast<std::size_t>(dim)].defined()) continue;
    first = std::min(first, dim);
    last = dim;
    ++count;
  }
  const std::int64_t in_front = last - first + 1 == count ? first : 0;
  at::DimVector sizes, strides, before;
  const auto put_indices = [&] {
    before.assign(sizes.size(), 1);
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    strides.insert(strides.end(), shape.size(), 0);
  };
  if (in_front == 0) put_indices();
  for (std::int64_t dim = 0; dim < self.dim(); ++dim) {
    if (dim == in_front && in_front > 0) put_indices();
    if (indices[static_cast<std::size_t>(dim)].defined()) continue;
    sizes.push_back(self.size(dim));
    strides.push_back(self.stride(dim));
  }

  Chosen chosen{self.as_strided(sizes, strides), {}, true};
  for (std::int64_t dim = 0; dim < self.dim(); ++dim) {
    const at::Tensor& index = indices[static_cast<std::size_t>(dim)];
    if (!index.defined()) continue;
    at::DimVector all(sizes.size(), 0);
    std::copy(index.strides().begin(), index.strides().end(),
              all.begin() + static_cast<std::ptrdiff_t>(before.size()));
    chosen.choosers.push_back(
        {index.as_strided(sizes, all), self.stride(dim), self.size(dim), dim});
  }
  return chosen;
}

c10::List<std::optional<at::Tensor>> on_host(const std::vector<at::Tensor>& indices) {
  c10::List<std::optional<at::Tensor>> all;
  for (const at::Tensor& index : indices) {
    all.push_back(index.defined() ? std::optional<at::Tensor>(index.cpu()) : std::nullopt);
  }
  return all;
}

}  // namespace ocl
