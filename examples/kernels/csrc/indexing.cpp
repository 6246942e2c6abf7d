// Operators that move elements: by indices, masks and places, and from one tensor to another.

#include <cstdint>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>
#include <backendkit/dense.h>

#include "dtypes.h"
#include "elements.h"
#include "kernels.h"
#include "shapes.h"

namespace foo {

namespace {

/// An index as a place among `size`, counted from the end if negative. Throws PyTorch's IndexError.
std::int64_t checked(std::int64_t index, std::int64_t dim, std::int64_t size) {
  TORCH_CHECK_INDEX(index >= -size && index < size, "index ", index,
                    " is out of bounds for dimension ", dim, " with size ", size);
  return index < 0 ? index + size : index;
}

/// The same for operators whose indices are never counted from the end.
std::int64_t checked_place(std::int64_t index, std::int64_t size) {
  TORCH_CHECK_INDEX(index >= 0 && index < size, "index out of range in self");
  return index;
}

void check_index_dtype(const char* op, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, op,
              ": Expected dtype int32 or int64 for index");
}

/// A tensor as a plain array of a dtype and of sizes to which it can be broadcast.
at::Tensor spread(const at::Tensor& tensor, const at::TensorOptions& options,
                  at::IntArrayRef sizes) {
  return tensor.to(options).expand(sizes).contiguous();
}

template <class Keep>
void keep_where(const char* op, const at::Tensor& self, const at::Tensor& out, const Keep& keep) {
  for_dtype(out.scalar_type(), op, [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    const std::int64_t rows = self.size(-2), columns = self.size(-1), count = self.numel();
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = keep(i / columns % rows, i % columns) ? T(in[i]) : T(0);
    }
  });
}

}  // namespace

// PyTorch makes of `indices` what numpy does: masks count as the places where they are true, and
// all are broadcast. DenseTensors does that; with `inputs = "dense"` it has been done.
void index(const at::Tensor& self, at::IOptTensorListRef indices, at::DimVector, at::DimVector,
           const at::Tensor& out) {
  backendkit::DenseTensors tensors;
  std::vector<at::Tensor> places;
  std::vector<std::int64_t> indexed, kept;  // dimensions
  at::DimVector shape;
  for (const at::OptionalTensorRef& one : tensors.contiguous(indices)) {
    const auto dim = static_cast<std::int64_t>(places.size());
    places.push_back(one.has_value() ? *one : at::Tensor());
    if (one.has_value() && one->defined()) {
      indexed.push_back(dim);
      shape = at::DimVector(one->sizes());
    }
  }
  places.resize(static_cast<std::size_t>(self.dim()));
  for (std::int64_t dim = 0; dim < self.dim(); ++dim) {
    if (!places[static_cast<std::size_t>(dim)].defined()) kept.push_back(dim);
  }
  // The dimensions of the indices stand where the first of them was, or in front if they are apart.
  const bool apart = indexed.back() - indexed.front() + 1 != std::int64_t(indexed.size());
  const std::size_t in_front = apart ? 0 : static_cast<std::size_t>(indexed.front());
  const std::vector<std::int64_t> strides = plain_strides(self.sizes());

  for_dtype(out.scalar_type(), "index", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    const std::vector<std::int64_t> none(out.sizes().size(), 0);
    const std::vector<std::int64_t> rows = plain_strides(shape);
    each_place(out.sizes(), none, [&](std::int64_t number, std::int64_t, const auto& position) {
      std::int64_t from = 0, row = 0;
      for (std::size_t i = 0; i < shape.size(); ++i) row += rows[i] * position[in_front + i];
      for (const std::int64_t dim : indexed) {
        const auto d = static_cast<std::size_t>(dim);
        const std::int64_t place = places[d].template const_data_ptr<std::int64_t>()[row];
        from += strides[d] * checked(place, dim, self.size(dim));
      }
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::size_t at = i < in_front ? i : i + shape.size();
        from += strides[static_cast<std::size_t>(kept[i])] * position[at];
      }
      to[number] = in[from];
    });
  });
}

at::Tensor index_select(const at::Tensor& self, std::int64_t dim, const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  check_index_dtype("index_select()", index);
  const Along along(self, c10::maybe_wrap_dim(dim, self.dim()));
  const std::int64_t count = index.numel();
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) {
    sizes[static_cast<std::size_t>(c10::maybe_wrap_dim(dim, self.dim()))] = count;
  } else {
    TORCH_CHECK(count == 1, "index_select(): Index to scalar can have only 1 value, got ", count,
                " value(s)");
  }
  const at::Tensor out = at::empty(sizes, self.options());
  const at::Tensor whole = index.to(at::kLong);
  const auto places = read<std::int64_t>(whole, whole.sizes());
  for_dtype(self.scalar_type(), "index_select", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    along.lines([&](std::int64_t i, std::int64_t j) {
      for (std::int64_t k = 0; k < count; ++k) {
        to[(i * count + k) * along.inner + j] =
            in[along.number(i, checked_place(places[k], along.size), j)];
      }
    });
  });
  return out;
}

void gather(const at::Tensor& self, std::int64_t dim, const at::Tensor& index, bool,
            const at::Tensor& out) {
  if (index.numel() == 0) return;
  const std::vector<std::int64_t> strides = plain_strides(self.sizes());
  const auto axis = static_cast<std::size_t>(c10::maybe_wrap_dim(dim, self.dim()));
  const at::Tensor whole = index.to(at::kLong);  // PyTorch allows int32 as well
  const auto places = read<std::int64_t>(whole, whole.sizes());
  for_dtype(out.scalar_type(), "gather", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    const std::vector<std::int64_t> none(index.sizes().size(), 0);
    each_place(index.sizes(), none, [&](std::int64_t number, std::int64_t, const auto& position) {
      const std::int64_t place = places[number];
      const std::int64_t size = self.dim() == 0 ? 1 : self.sizes()[axis];
      TORCH_CHECK(place >= 0 && place < size, "index ", place, " is out of bounds for dimension ",
                  axis, " with size ", size);
      std::int64_t from = 0;
      for (std::size_t i = 0; i < strides.size(); ++i) {
        from += strides[i] * (i == axis ? place : position[i]);
      }
      to[number] = in[from];
    });
  });
}

void scatter_add(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                 const at::Tensor& src, const at::Tensor& out) {
  const std::vector<std::int64_t> strides = plain_strides(self.sizes());
  const std::vector<std::int64_t> src_strides = plain_strides(src.sizes());
  const auto axis = static_cast<std::size_t>(c10::maybe_wrap_dim(dim, self.dim()));
  for_dtype(out.scalar_type(), "scatter_add", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const std::int64_t count = out.numel();
    std::vector<typename Sum<T>::type> totals(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) totals[static_cast<std::size_t>(i)] = in[i];
    if (index.numel() > 0) {
      const at::Tensor whole = index.to(at::kLong);  // PyTorch allows int32 as well
      const auto places = read<std::int64_t>(whole, whole.sizes());
      const auto added = read<T>(src, src.sizes());
      const std::vector<std::int64_t> none(index.sizes().size(), 0);
      each_place(index.sizes(), none, [&](std::int64_t number, std::int64_t, const auto& position) {
        const std::int64_t place = places[number];
        const std::int64_t size = self.dim() == 0 ? 1 : self.sizes()[axis];
        TORCH_CHECK(place >= 0 && place < size, "index ", place, " is out of bounds for dimension ",
                    axis, " with size ", size);
        std::int64_t from = 0, target = 0;
        for (std::size_t i = 0; i < position.size(); ++i) {
          if (i < src_strides.size()) from += src_strides[i] * position[i];
          if (i < strides.size()) target += strides[i] * (i == axis ? place : position[i]);
        }
        totals[static_cast<std::size_t>(target)] += added[from];
      });
    }
    const auto to = write<T>(out);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<T>(totals[static_cast<std::size_t>(i)]);
    }
  });
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, std::int64_t, bool,
                     bool) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_index_dtype("embedding()", indices);
  at::DimVector sizes(indices.sizes());
  const std::int64_t columns = weight.size(1), count = indices.numel();
  sizes.push_back(columns);
  const at::Tensor out = at::empty(sizes, weight.options());
  const at::Tensor whole = indices.to(at::kLong);
  const auto rows = read<std::int64_t>(whole, whole.sizes());
  for_dtype(weight.scalar_type(), "embedding", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(weight, weight.sizes());
    const auto to = write<T>(out);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = checked_place(rows[i], weight.size(0));
      for (std::int64_t j = 0; j < columns; ++j) to[i * columns + j] = in[row * columns + j];
    }
  });
  return out;
}

at::Tensor embedding_backward(const at::Tensor& grad_output, const at::Tensor& indices,
                              std::int64_t num_weights, std::int64_t padding_idx,
                              bool scale_grad_by_freq) {
  check_index_dtype("embedding_backward()", indices);
  const std::int64_t columns = grad_output.size(-1), count = indices.numel();
  const at::Tensor out = at::empty({num_weights, columns}, grad_output.options());
  const at::Tensor whole = indices.to(at::kLong);
  const auto rows = read<std::int64_t>(whole, whole.sizes());
  const auto grad = read<float>(grad_output, grad_output.sizes());
  std::vector<double> totals(static_cast<std::size_t>(num_weights * columns), 0);
  std::vector<std::int64_t> uses(static_cast<std::size_t>(num_weights), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    ++uses[static_cast<std::size_t>(checked_place(rows[i], num_weights))];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows[i];
    if (row == padding_idx) continue;
    const auto times = static_cast<double>(uses[static_cast<std::size_t>(row)]);
    for (std::int64_t j = 0; j < columns; ++j) {
      totals[static_cast<std::size_t>(row * columns + j)] +=
          grad[i * columns + j] / (scale_grad_by_freq ? times : 1);
    }
  }
  const auto to = write<float>(out);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    to[static_cast<std::int64_t>(i)] = static_cast<float>(totals[i]);
  }
  return out;
}

// Not elementwise, so what it gets may still be of several dtypes.
void cat(const at::ITensorListRef& tensors, std::int64_t dim, std::int64_t, bool, bool, bool,
         at::MemoryFormat, const at::Tensor& out) {
  const Along whole(out, dim);
  for_dtype(out.scalar_type(), "cat", [&](auto zero) {
    using T = decltype(zero);
    const auto to = write<T>(out);
    std::int64_t before = 0;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.dim() == 1 && tensor.numel() == 0) continue;  // of any shape, for history's sake
      const at::Tensor part = tensor.to(out.scalar_type());
      const auto in = read<T>(part, part.sizes());
      const Along along(part, dim);
      along.lines([&](std::int64_t i, std::int64_t j) {
        for (std::int64_t k = 0; k < along.size; ++k) {
          to[whole.number(i, before + k, j)] = in[along.number(i, k, j)];
        }
      });
      before += along.size;
    }
  });
}

void tril(const at::Tensor& self, std::int64_t diagonal, const at::Tensor& out) {
  keep_where("tril", self, out, [diagonal](auto i, auto j) { return j - i <= diagonal; });
}

void triu(const at::Tensor& self, std::int64_t diagonal, const at::Tensor& out) {
  keep_where("triu", self, out, [diagonal](auto i, auto j) { return j - i >= diagonal; });
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  for_dtype(self.scalar_type(), "fill_", [&](auto zero) {
    using T = decltype(zero);
    const T wanted = value.to<T>();
    const auto to = write<T>(self);
    const std::int64_t count = self.numel();
    for (std::int64_t i = 0; i < count; ++i) to[i] = wanted;
  });
  return self;
}

at::Tensor& masked_fill(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  const at::Tensor chosen = mask.expand(self.sizes()).contiguous();
  const bool* mark = chosen.const_data_ptr<bool>();
  for_dtype(self.scalar_type(), "masked_fill_", [&](auto zero) {
    using T = decltype(zero);
    const T wanted = value.to<T>();
    const auto to = write<T>(self);
    const std::int64_t count = self.numel();
    for (std::int64_t i = 0; i < count; ++i) {
      if (mark[i]) to[i] = wanted;
    }
  });
  return self;
}

// Not a structured operator: PyTorch's iterator checks devices, broadcasts and makes the result,
// whose strides are then those that other devices choose.
at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const at::ScalarType dtype = at::result_type(self, other);
  const at::Tensor result = at::TensorIteratorConfig()
                                .check_all_same_dtype(false)
                                .add_owned_output(at::Tensor())
                                .add_const_input(condition)
                                .add_const_input(self)
                                .add_const_input(other)
                                .declare_static_dtype(dtype)
                                .build()
                                .output();
  const at::Tensor out = at::empty(result.sizes(), result.options());
  const at::Tensor mask = spread(condition, condition.options().device(out.device()), out.sizes());
  const at::Tensor yes = spread(self, out.options(), out.sizes());
  const at::Tensor no = spread(other, out.options(), out.sizes());
  const bool* mark = mask.const_data_ptr<bool>();
  for_dtype(dtype, "where", [&](auto zero) {
    using T = decltype(zero);
    const auto if_true = read<T>(yes, out.sizes());
    const auto if_false = read<T>(no, out.sizes());
    const auto to = write<T>(out);
    const std::int64_t count = out.numel();
    for (std::int64_t i = 0; i < count; ++i) to[i] = mark[i] ? if_true[i] : if_false[i];
  });
  return result.is_contiguous() ? out : result.copy_(out);
}

}  // namespace foo
