// Operators that choose elements by indices. The others are composed by PyTorch: `embedding` is an
// index_select, `index_add` and `index_fill` of one dimension are not here.
//
// An index that is out of range is an error when somebody waits for the stream, as with CUDA, but
// the device can be used further; see faults.h.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "advanced_index.h"
#include "dtypes.h"
#include "elementwise.h"
#include "fallback.h"
#include "indexing.h"
#include "kernels.h"

namespace ocl {

namespace {

at::Tensor with_a_dimension(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
}

at::Tensor as_places(const at::Tensor& index) { return index.to(at::kLong); }

/// Elements of `data` for each place of an index of the same rank, which chooses in dimension
/// `dim`.
Chosen along(const at::Tensor& tensor, std::int64_t dim, const at::Tensor& given) {
  const at::Tensor data = with_a_dimension(tensor);
  const at::Tensor index = as_places(with_a_dimension(given));
  const std::int64_t axis = c10::maybe_wrap_dim(dim, data.dim());
  at::DimVector strides(data.strides());
  strides[static_cast<std::size_t>(axis)] = 0;
  return {data.as_strided(index.sizes(), strides),
          {{index, data.stride(axis), data.size(axis), axis}}};
}

/// The part of a source that an index of another shape uses.
at::Tensor part(const at::Tensor& source, const at::Tensor& index) {
  const at::Tensor whole = with_a_dimension(source);
  return whole.as_strided(with_a_dimension(index).sizes(), whole.strides());
}

void start_with(const at::Tensor& self, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  if (!self.is_same(out)) out.copy_(self);
}

/// Adds to elements of `out`, of any dtype for which the device has no addition: in another one.
template <class Choose>
void add_to(const char* op, const at::Tensor& out, const at::Tensor& values, const Choose& choose) {
  const int device = out.device().index();
  if (can_add(out.scalar_type(), device)) return add(op, choose(out), values);
  const auto wide = is_floating(out.scalar_type()) ? at::kFloat : at::kInt;
  const at::Tensor sums = out.to(wide);
  add(op, choose(sums), values.to(wide));
  out.copy_(sums);
}

/// Whether a kernel takes so many indices: masks without dimensions leave none.
bool takes(const Chosen& chosen) {
  return !chosen.choosers.empty() && chosen.choosers.size() <= kMostChoosers;
}

/// Whether no dtype that the device adds is wide enough.
bool cannot_add(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kBool || (type == at::kLong && !can_add(type, tensor.device().index()));
}

}  // namespace

at::Tensor index_select(const at::Tensor& self, std::int64_t dim, const at::Tensor& index) {
  const std::int64_t axis = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  TORCH_CHECK(self.dim() == 0 || self.size(axis) > 0 || index.numel() == 0,
              "index_select(): self indexing axis dim should be positive");
  const at::Tensor data = with_a_dimension(self);
  at::DimVector sizes(data.sizes()), strides(data.strides());
  const auto place = static_cast<std::size_t>(axis);
  sizes[place] = index.numel();
  at::Tensor out =
      at::empty(self.dim() == 0 ? at::IntArrayRef() : at::IntArrayRef(sizes), self.options());
  at::DimVector along_axis(sizes.size(), 1);
  along_axis[place] = index.numel();
  strides[place] = 0;
  const Chooser chooser{as_places(index).reshape(along_axis).expand(sizes), data.stride(axis),
                        data.size(axis), axis};
  read("index_select", {data.as_strided(sizes, strides), {chooser}}, out.view(sizes));
  return out;
}

void gather(const at::Tensor& self, std::int64_t dim, const at::Tensor& index, bool,
            const at::Tensor& out) {
  if (index.numel() == 0) return;
  at::assert_no_internal_overlap(out);
  read("gather", along(self, dim, index), with_a_dimension(out));
}

void scatter(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
             const at::Tensor& src, const at::Tensor& out) {
  start_with(self, out);
  if (index.numel() == 0) return;
  write("scatter", along(out, dim, index), part(src, index));
}

void scatter_value(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                   const at::Scalar& value, const at::Tensor& out) {
  start_with(self, out);
  if (index.numel() == 0) return;
  const at::Scalar number = written(value, out.scalar_type());
  const at::Tensor one = at::empty({1}, out.options()).fill_(number);
  write("scatter", along(out, dim, index), one.expand(with_a_dimension(index).sizes()));
}

void scatter_add(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                 const at::Tensor& src, const at::Tensor& out) {
  start_with(self, out);
  if (index.numel() == 0) return;
  if (cannot_add(out)) {
    out.copy_(out.cpu().scatter_add_(dim, index.cpu(), src.cpu()));
    return;
  }
  add_to("scatter_add", out, part(src, index),
         [&](const at::Tensor& sums) { return along(sums, dim, index); });
}

at::Tensor embedding_dense_backward(const at::Tensor& grad_output, const at::Tensor& indices,
                                    std::int64_t num_weights, std::int64_t padding_idx,
                                    bool scale_grad_by_freq) {
  at::checkScalarTypes("embedding_backward", {indices, "indices", 2}, {at::kLong, at::kInt});
  if (scale_grad_by_freq) {
    return Fallback<decltype(embedding_dense_backward)>::call("aten::embedding_dense_backward", "",
                                                              grad_output, indices, num_weights,
                                                              padding_idx, scale_grad_by_freq);
  }
  const std::int64_t columns = grad_output.size(-1);
  const at::Tensor grad = grad_output.reshape({indices.numel(), columns});
  const at::Tensor rows = as_places(indices).reshape({-1, 1}).expand(grad.sizes());
  const at::Tensor out = at::zeros({num_weights, columns}, grad_output.options());
  add_to("embedding_dense_backward", out, grad, [&](const at::Tensor& sums) {
    Chosen chosen{sums.as_strided(grad.sizes(), {0, 1}), {{rows, columns, num_weights, 0}}};
    if (padding_idx >= 0) chosen.skipped = padding_idx;
    return chosen;
  });
  return out;
}

void index(const at::Tensor& self, at::IOptTensorListRef indices, at::DimVector, at::DimVector,
           const at::Tensor& out) {
  std::vector<at::Tensor> all;
  for (const at::OptionalTensorRef& one : indices) {
    all.push_back(one.has_value() ? *one : at::Tensor());
  }
  at::assert_no_internal_overlap(out);
  const Chosen chosen = chosen_by(self, all);
  if (takes(chosen)) return read("index", chosen, out);
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& one : all) {
    list.push_back(one.defined() ? std::optional(one) : std::nullopt);
  }
  at::Tensor to = out;
  Fallback<at::Tensor&(const at::Tensor&, const c10::List<std::optional<at::Tensor>>&,
                       at::Tensor&)>::call("aten::index", "Tensor_out", self, list, to);
}

at::Tensor& index_put_impl_(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices,
                            const at::Tensor& values, bool accumulate, bool) {
  TORCH_CHECK_INDEX(indices.size() <= static_cast<std::size_t>(self.dim()),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", values.scalar_type(),
              " for the source.");
  const auto fall_back = [&]() -> at::Tensor& {
    return Fallback<decltype(index_put_impl_)>::call("aten::_index_put_impl_", "", self, indices,
                                                     values, accumulate, false);
  };
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) return fall_back();
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> one = indices.get(i);
    all.push_back(one.value_or(at::Tensor()));
    if (all.back().defined()) at::assert_no_overlap(self, all.back());
  }
  at::assert_no_overlap(self, values);
  if (!accumulate && values.numel() == 1 && all.size() == 1 && all[0].defined() &&
      all[0].scalar_type() == at::kBool && all[0].sizes() == self.sizes()) {
    return self.masked_fill_(all[0], values.reshape({}));
  }
  if (accumulate && cannot_add(self)) {
    self.copy_(self.cpu().index_put_(on_host(all), values.cpu(), true));
    return self;
  }
  const Chosen chosen = chosen_by(self, all);
  if (!takes(chosen)) return fall_back();
  TORCH_CHECK(at::is_expandable_to(values.sizes(), chosen.data.sizes()),
              "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", chosen.data.sizes());
  const at::Tensor spread = values.to(self.device()).expand(chosen.data.sizes());
  if (!accumulate) {
    write("index_put", chosen, spread);
  } else {
    add_to("index_put", self, spread, [&](const at::Tensor& sums) { return chosen_by(sums, all); });
  }
  return self;
}

}  // namespace ocl
