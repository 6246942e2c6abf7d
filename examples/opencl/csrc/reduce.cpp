#include "reduce.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/empty.h>

#include "rows.h"

namespace ocl {

namespace {

// Rows are as short as keeps float32 exact: a total of totals errs less than a long total.
constexpr std::int64_t kRow = 1024;       // neighbours
constexpr std::int64_t kColumn = 32;      // elements of a column
constexpr std::int64_t kMostRows = 64;    // for one part
constexpr std::int64_t kWorth = 1 << 15;  // elements that are worth a second launch
constexpr std::int64_t kBlock = 256;      // columns of a CPU's work item, see kernels/reduce.cl

struct Dimension {
  std::int64_t size;
  std::int64_t from;   ///< stride of the tensor
  std::int64_t to;     ///< stride of the result; 0 if it is reduced
  std::int64_t shift;  ///< stride of the numbers `m`; 0 if it is reduced
  bool reduced;
};

using Dimensions = std::vector<Dimension>;

/// `Reduction` of kernels/reduce.cl.
struct Reduction {
  std::array<std::int64_t, 2> kept = {1, 1};
  std::array<std::int64_t, 2> from{};
  std::array<std::int64_t, 2> to{};
  std::array<std::int64_t, 2> shift{};
  std::int64_t rows = 1;
  std::int64_t length = 1;
  std::int64_t total = 1;
  std::int64_t row_stride = 0;
  std::int64_t stride = 1;
  std::int64_t parts = 1;
  std::int64_t part_stride = 0;
};

/// The dimensions of a reduction, the fastest first, as few as possible.
Dimensions dimensions_of(const at::Tensor& self, const std::bitset<at::dim_bitset_size>& reduced,
                         const at::Tensor& out) {
  const bool keeps = out.dim() == self.dim();
  Dimensions all;
  std::int64_t place = out.dim();
  std::int64_t shift = 1;
  for (std::int64_t dim = self.dim() - 1; dim >= 0; --dim) {
    const bool here = reduced[static_cast<std::size_t>(dim)];
    if (keeps || !here) --place;
    if (self.size(dim) == 1) continue;
    all.push_back(
        {self.size(dim), self.stride(dim), here ? 0 : out.stride(place), here ? 0 : shift, here});
    if (!here) shift *= self.size(dim);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Dimension& a, const Dimension& b) { return a.from < b.from; });
  Dimensions merged;
  for (const Dimension& one : all) {
    if (!merged.empty()) {
      Dimension& last = merged.back();
      if (last.reduced == one.reduced && one.from == last.from * last.size &&
          one.to == last.to * last.size && one.shift == last.shift * last.size) {
        last.size *= one.size;
        continue;
      }
    }
    merged.push_back(one);
  }
  return merged;
}

/// The last dimensions, from one on.
std::bitset<at::dim_bitset_size> dims_from(std::size_t first, std::int64_t rank) {
  std::bitset<at::dim_bitset_size> mask;
  for (auto dim = first; dim < static_cast<std::size_t>(rank); ++dim) mask.set(dim);
  return mask;
}

/// Whether a kernel can walk the dimensions: neighbours lie one after the other, and there are at
/// most two dimensions of either kind.
bool walks(const Dimensions& all) {
  const auto reduced = std::count_if(all.begin(), all.end(), [](auto& one) { return one.reduced; });
  return all.empty() || (all[0].from == 1 && reduced <= 2 &&
                         static_cast<std::ptrdiff_t>(all.size()) - reduced <= 2);
}

Reduction geometry_of(const Dimensions& all, bool columns) {
  Reduction r;
  int kept = 1;
  int reduced = 1;
  for (const Dimension& one : all) {
    if (!one.reduced) {
      r.kept.at(kept) = one.size;
      r.from.at(kept) = one.from;
      r.to.at(kept) = one.to;
      r.shift.at(kept) = one.shift;
      --kept;
    } else if (reduced-- == 1) {
      r.length = one.size;
      r.stride = one.from;
    } else {
      r.rows = one.size;
      r.row_stride = one.from;
    }
  }
  r.total = r.rows * r.length;
  const std::int64_t most = columns ? kColumn : kRow;
  if (r.rows == 1 && r.length > most) {  // one long row: many short ones
    r.rows = (r.length + most - 1) / most;
    r.length = most;
    r.row_stride = most * r.stride;
  }
  return r;
}

/// Into how many parts to divide the rows, so that there is work for all and no total is long.
std::int64_t parts_of(const Reduction& r, bool columns, const Device& device) {
  const std::int64_t width = !columns ? 1 : device.is_cpu ? kBlock : 1;
  const std::int64_t jobs = r.kept[0] * ((r.kept[1] + width - 1) / width);
  const auto units = static_cast<std::int64_t>(device.units);
  const std::int64_t wanted = device.is_cpu ? 2 * units : (columns ? 2048 : 16) * units;
  const std::int64_t worth = r.kept[0] * r.kept[1] * r.total >= kWorth ? wanted / jobs : 1;
  return std::clamp<std::int64_t>(std::max(worth, r.rows / kMostRows), 1, r.rows);
}

/// Which elements a launch reduces, and to what: the tensor's or totals, to totals or to results.
struct Pass {
  bool totals = false;  ///< whether it combines totals
  bool last = true;     ///< whether it finishes
};

std::string texts_of(const Reducer& reducer, Pass pass) {
  const auto define = [](const char* name, const char* value) {
    return std::string("#define ") + name + " " + value + "\n";
  };
  return define("START", reducer.start) +
         define("STEP", pass.totals ? reducer.combine : reducer.step) +
         define("COMBINE", reducer.combine) + define("FINISH", pass.last ? reducer.finish : "t");
}

void launch(const Reducer& reducer, const Reduction& r, bool columns, Pass pass,
            c10::ScalarType number, const at::Tensor& self, const at::Tensor& out, double x,
            const at::Tensor& shift) {
  const int device = out.device().index();
  RowLaunch launch(reducer.op, device, "reduce", columns ? "columns" : "rows",
                   columns ? 1 : r.length,
                   {{"NUMBER", number}, {"A", self}, {"OUT", out}, {"SHIFT", shift}}, reducer.op,
                   texts_of(reducer, pass), (pass.totals ? 1U : 0U) | (pass.last ? 2U : 0U));
  launch.value(r);
  launch.value(static_cast<float>(x));
  launch.output(out).tensor(self).tensor(shift);
  const std::int64_t width = columns && device_at(device).is_cpu ? kBlock : 1;
  const std::int64_t jobs = r.kept[0] * ((r.kept[1] + width - 1) / width) * r.parts;
  launch.run(jobs, (r.rows / r.parts) * (columns ? r.length * width : 1));
}

void run(const Reducer& reducer, const Dimensions& all, Pass pass, c10::ScalarType number,
         const at::Tensor& self, const at::Tensor& out, double x, const at::Tensor& shift) {
  const bool columns = !all.empty() && !all[0].reduced;
  Reduction r = geometry_of(all, columns);
  r.parts = parts_of(r, columns, device_at(out.device().index()));
  if (r.parts == 1) return launch(reducer, r, columns, pass, number, self, out, x, shift);
  const std::int64_t results = r.kept[0] * r.kept[1];
  Dimensions next = {{r.kept[1], 1, r.to[1], 0, false},
                     {r.kept[0], r.kept[1], r.to[0], 0, false},
                     {r.parts, results, 0, 0, true}};
  std::erase_if(next, [](const Dimension& one) { return one.size == 1; });
  const at::Tensor totals = at::empty({r.parts, results}, out.options().dtype(number));
  r.to = {r.kept[1], 1};
  r.part_stride = results;
  launch(reducer, r, columns, {pass.totals, false}, number, self, totals, x, shift);
  run(reducer, next, {true, true}, number, totals, out, x, {});
}

/// Results of no elements.
void run_empty(const Reducer& reducer, c10::ScalarType number, const at::Tensor& self,
               const at::Tensor& out, double x) {
  Reduction r;
  r.kept[1] = out.numel();
  r.to[1] = 1;
  r.total = 0;
  launch(reducer, r, false, {}, number, self, out, x, {});
}

}  // namespace

void reduce(const Reducer& reducer, const at::Tensor& self, at::OptionalIntArrayRef dims,
            c10::ScalarType number, const at::Tensor& out, double x, const at::Tensor& shift) {
  if (out.numel() == 0) return;
  const bool some = dims.has_value() && !dims->empty();
  const auto reduced = at::dim_list_to_bitset(some ? dims : std::nullopt, self.dim());
  if (self.numel() != 0) {
    const Dimensions all = dimensions_of(self, reduced, out);
    if (walks(all)) return run(reducer, all, {}, number, self, out, x, shift);
  }
  c10::DimVector order;
  std::vector<std::int64_t> sizes;
  for (const bool wanted : {false, true}) {
    for (std::int64_t dim = 0; dim < self.dim(); ++dim) {
      if (reduced[static_cast<std::size_t>(dim)] != wanted) continue;
      order.push_back(dim);
      if (!wanted) sizes.push_back(self.size(dim));
    }
  }
  const bool direct = out.is_contiguous();
  const at::Tensor to = direct ? out : at::empty(out.sizes(), out.options());
  if (self.numel() == 0) {
    run_empty(reducer, number, self, to, x);
  } else {
    const at::Tensor dense = self.permute(order).contiguous();
    run(reducer, dimensions_of(dense, dims_from(sizes.size(), self.dim()), to.view(sizes)), {},
        number, dense, to, x, shift);
  }
  if (!direct) out.copy_(to);
}

}  // namespace ocl
