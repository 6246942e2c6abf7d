// Operators that make few elements of many.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/MemoryOverlap.h>

#include "dtypes.h"
#include "elements.h"
#include "kernels.h"
#include "shapes.h"

namespace foo {

namespace {

/// Strides by which each element of a tensor finds the element of the result it belongs to. No
/// dimensions mean all.
std::vector<std::int64_t> result_strides(const at::Tensor& self, at::OptionalIntArrayRef dims) {
  const auto rank = static_cast<std::size_t>(self.dim());
  std::vector<bool> reduced(rank, !dims.has_value() || dims->empty());
  if (dims.has_value() && rank > 0) {
    for (const std::int64_t dim : *dims) {
      reduced[static_cast<std::size_t>(c10::maybe_wrap_dim(dim, self.dim()))] = true;
    }
  }
  std::vector<std::int64_t> strides(rank, 0);
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    if (reduced[i]) continue;
    strides[i] = stride;
    stride *= self.sizes()[i];
  }
  return strides;
}

/// The sums over some dimensions.
template <class T>
std::vector<typename Sum<T>::type> sums(const at::Tensor& self, at::OptionalIntArrayRef dims,
                                        std::int64_t count) {
  const auto in = read<T>(self, self.sizes());
  std::vector<typename Sum<T>::type> totals(static_cast<std::size_t>(count), 0);
  each_place(self.sizes(), result_strides(self, dims),
             [&](std::int64_t number, std::int64_t place, const auto&) {
               totals[static_cast<std::size_t>(place)] += in[number];
             });
  return totals;
}

/// Whether `value` is to replace `best` in a search for the largest; a NaN is larger than all.
template <class T>
bool beats(T value, T best) {
  return value > best || (value != value && best == best);
}

}  // namespace

void sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool, std::optional<at::ScalarType>,
         const at::Tensor& out) {
  for_dtype(out.scalar_type(), "sum", [&](auto zero) {
    using T = decltype(zero);
    const auto totals = sums<T>(self, dim, out.numel());
    const auto to = write<T>(out);
    for (std::size_t i = 0; i < totals.size(); ++i) {
      to[static_cast<std::int64_t>(i)] = static_cast<T>(totals[i]);
    }
  });
}

void mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool, std::optional<at::ScalarType>,
          const at::Tensor& out) {
  const auto totals = sums<float>(self, dim, out.numel());
  const auto to = write<float>(out);
  const double each = static_cast<double>(self.numel()) / static_cast<double>(totals.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    to[static_cast<std::int64_t>(i)] = static_cast<float>(totals[i] / each);
  }
}

void amax(const at::Tensor& self, at::IntArrayRef dim, bool, const at::Tensor& out) {
  for_dtype(out.scalar_type(), "amax", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    // Not a vector of T, for which a vector of bool would stand.
    std::vector<std::int64_t> best(static_cast<std::size_t>(out.numel()), -1);
    each_place(self.sizes(), result_strides(self, dim),
               [&](std::int64_t number, std::int64_t place, const auto&) {
                 std::int64_t& largest = best[static_cast<std::size_t>(place)];
                 if (largest < 0 || beats<T>(in[number], in[largest])) largest = number;
               });
    for (std::size_t i = 0; i < best.size(); ++i) to[static_cast<std::int64_t>(i)] = in[best[i]];
  });
}

void argmax(const at::Tensor& self, std::optional<std::int64_t> dim, bool, const at::Tensor& out) {
  const auto to = write<std::int64_t>(out);
  Along along(self, dim.value_or(0));
  if (!dim.has_value()) {
    along.outer = along.inner = 1;
    along.size = self.numel();
  }
  for_dtype(self.scalar_type(), "argmax", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    along.lines([&](std::int64_t i, std::int64_t j) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < along.size; ++k) {
        if (beats<T>(in[along.number(i, k, j)], in[along.number(i, best, j)])) best = k;
      }
      to[i * along.inner + j] = best;
    });
  });
}

void max_along(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& values,
               const at::Tensor& indices) {
  const Along along(self, dim);
  const auto places = write<std::int64_t>(indices);
  for_dtype(self.scalar_type(), "max", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(values);
    along.lines([&](std::int64_t i, std::int64_t j) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < along.size; ++k) {
        if (beats<T>(in[along.number(i, k, j)], in[along.number(i, best, j)])) best = k;
      }
      to[i * along.inner + j] = in[along.number(i, best, j)];
      places[i * along.inner + j] = best;
    });
  });
}

void cumsum(const at::Tensor& self, std::int64_t dim, std::optional<at::ScalarType>,
            const at::Tensor& out) {
  at::assert_no_internal_overlap(out);  // which PyTorch's meta function leaves to the kernel
  const Along along(self, dim);
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool,
                              "\"cumsum\" not implemented for 'Bool'");
  for_dtype(out.scalar_type(), "cumsum", [&](auto zero) {
    using T = decltype(zero);
    const auto in = read<T>(self, self.sizes());
    const auto to = write<T>(out);
    along.lines([&](std::int64_t i, std::int64_t j) {
      typename Sum<T>::type total = 0;
      for (std::int64_t k = 0; k < along.size; ++k) {
        total += in[along.number(i, k, j)];
        to[along.number(i, k, j)] = static_cast<T>(total);
      }
    });
  });
}

}  // namespace foo
