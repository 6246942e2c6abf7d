#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ocl {

/// A tensor of int64 indices, and the dimension of the data in which they choose.
struct Chooser {
  at::Tensor index;  ///< of the shape of the result, perhaps with strides of 0
  std::int64_t step;
  std::int64_t limit;
  std::int64_t dim;
};

constexpr std::size_t kMostChoosers = 4;

/// Elements of a tensor that indices choose, for each place of a result. `data` has the shape of
/// the result, with a stride of 0 where its place does not matter.
struct Chosen {
  at::Tensor data;
  std::vector<Chooser> choosers;        ///< the functions below take 1 to kMostChoosers
  bool wraps = false;                   ///< whether indices may count from the end
  std::optional<std::int64_t> skipped;  ///< an index whose elements are left alone
};

/// Copies the chosen elements to `out`, which has the shape of the result, any strides, and the
/// dtype of the data.
void read(const char* op, const Chosen& chosen, const at::Tensor& out);

/// Copies `values`, which is like `out` above, to the chosen elements. Where indices choose an
/// element several times, one of its values stays.
void write(const char* op, const Chosen& chosen, const at::Tensor& values);

/// Whether `add` takes a dtype on a device: others are added in one that it takes.
bool can_add(c10::ScalarType type, int device);

/// Adds `values` to the chosen elements. The order of additions is not the same in every run.
void add(const char* op, const Chosen& chosen, const at::Tensor& values);

}  // namespace ocl
