#include "product.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "blas.h"
#include "dtypes.h"
#include "launch.h"
#include "vector_product.h"

namespace ocl {

namespace {

/// The blocks of kernels/matmul.cl on a CPU.
struct Blocks {
  std::int64_t m, n, k;  ///< in local memory
  std::int64_t rows;     ///< in registers, with two vectors for each
  std::int64_t vector;
};

constexpr std::int64_t kLinesApart = 32;                       // at most; see A_LINE and B_LINE
constexpr std::size_t kUsefulMemory = std::size_t{512} << 10;  // the caches of a core hold it
constexpr std::int64_t kLeastWork = std::int64_t{1} << 18;     // multiplications of a work item

std::size_t bytes_of(const Blocks& blocks, std::size_t number) {
  const auto [m, n, k, rows, vector] = blocks;
  const std::int64_t elements =
      m * (k + kLinesApart) + k * (n + kLinesApart) + m * (n + kLinesApart);
  return static_cast<std::size_t>(elements) * number;
}

/// The greatest blocks for which a CPU has local memory; `number` is the size of a sum in bytes. A
/// narrow result has higher ones, so that a block of the right factor serves for more rows.
Blocks blocks_of(const Device& device, std::size_t number, bool narrow) {
  // A machine with vectors of 16 has 32 registers for them, others have at least 16.
  const std::int64_t rows = device.vector == 16 ? 12 : 6;
  const std::size_t most = std::min(device.local_memory, kUsefulMemory);
  Blocks blocks{narrow ? 288 : 96, narrow ? 64 : 256, 240, rows, device.vector};
  for (const Blocks& smaller :
       {Blocks{48, 128, 96, rows, device.vector}, Blocks{24, 64, 32, rows, device.vector},
        Blocks{12, 32, 16, rows, device.vector}}) {
    if (bytes_of(blocks, number) <= most) break;
    blocks = smaller;
  }
  return blocks;
}

std::int64_t ceiling(std::int64_t number, std::int64_t unit) { return (number + unit - 1) / unit; }

std::int64_t rounded_up(std::int64_t number, std::int64_t unit) {
  return ceiling(number, unit) * unit;
}

/// Makes the tiles of the result smaller while there are too few for all cores.
void divide(const Device& device, const Sizes& sizes, Blocks& tile) {
  const std::int64_t columns = 2 * tile.vector;
  tile.m = std::min(tile.m, rounded_up(sizes.m, tile.rows));
  tile.n = std::min(tile.n, rounded_up(sizes.n, columns));
  const auto few = [&] {
    const std::int64_t tiles = ceiling(sizes.m, tile.m) * ceiling(sizes.n, tile.n);
    return tiles * sizes.batches * sizes.groups < static_cast<std::int64_t>(2 * device.units) &&
           tile.m * tile.n * sizes.k * sizes.sums > kLeastWork;
  };
  while (few() && (tile.m > tile.rows || tile.n > columns)) {
    if (tile.n > columns && (tile.n >= tile.m || tile.m == tile.rows)) {
      tile.n = rounded_up(tile.n / 2, columns);
    } else {
      tile.m = rounded_up(tile.m / 2, tile.rows);
    }
  }
}

std::int64_t last_place(const at::Tensor& tensor) {
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) place += (tensor.size(i) - 1) * tensor.stride(i);
  return place;
}

/// `Problem` of kernels/matmul.cl. Without windows the kernel's is shorter by that.
template <class Index>
struct Problem {
  std::array<Index, 7> sizes;
  std::array<std::array<Index, 5>, 4> strides;
  std::array<Index, 16> window{};

  Problem(const Sizes& all, const Blocks& tile, const Matrix& out, const Matrix& a, const Matrix& b,
          const Matrix* added)
      : sizes(as({all.m, all.n, all.k, all.sums, all.groups, tile.m, tile.n})),
        strides{of(a), of(b), of(out), added == nullptr ? std::array<Index, 5>{} : of(*added)} {
    const Window* const one = a.window != nullptr ? a.window : b.window;
    if (one == nullptr) return;
    window =
        as({one->kernel_y, one->kernel_x, one->columns, one->step_y, one->step_x, one->dilation_y,
            one->dilation_x, one->begin_y, one->begin_x, one->divisor_y, one->divisor_x,
            one->size_y, one->size_x, one->channel, one->stride_y, one->stride_x});
  }

  template <std::size_t count>
  static std::array<Index, count> as(const std::int64_t (&values)[count]) {
    std::array<Index, count> result;
    std::copy(std::begin(values), std::end(values), result.begin());
    return result;
  }

  static std::array<Index, 5> of(const Matrix& matrix) {
    const Strides& one = matrix.strides;
    return as({one.batch, one.group, one.sum, one.row, one.column});
  }
};

template <class Index>
void pass(Launch& launch, const Problem<Index>& problem, bool windows) {
  if (windows) {
    launch.value(problem);
  } else {
    launch.value(std::pair(problem.sizes, problem.strides));
  }
}

std::string defines_of(const Blocks& blocks, bool small, const Matrix& out, const Matrix& a,
                       const Matrix& b, bool adds) {
  std::string all;
  const auto define = [&](const char* name, const std::string& value) {
    all += std::string("#define ") + name + " " + value + "\n";
  };
  define("INDEX", small ? "int" : "long");
  define("TYPE", dtype_of(a.tensor.scalar_type()).name);
  define("OUT", dtype_of(out.tensor.scalar_type()).name);
  if (adds) define("ADDED", "1");
  if (a.window != nullptr) define("WINDOW_A", "1");
  if (b.window != nullptr) define("WINDOW_B", "1");
  define("TILE_M", std::to_string(blocks.m));
  define("TILE_N", std::to_string(blocks.n));
  define("TILE_K", std::to_string(blocks.k));
  define("ROWS", std::to_string(blocks.rows));
  define("VECTOR", std::to_string(blocks.vector));
  return all;
}

}  // namespace

void multiply(const char* op, const Sizes& sizes, const Matrix& out, const Matrix& a,
              const Matrix& b, const Matrix* added, const at::Scalar& alpha,
              const at::Scalar& beta) {
  if (sizes.m * sizes.n * sizes.batches * sizes.groups == 0) return;
  const auto type = a.tensor.scalar_type();
  const int index = out.tensor.device().index();
  Device& device = device_at(index);
  if (multiply_vector(op, sizes, out, a, b, added, alpha, beta)) return;
  if (multiply_with_blas(op, device, sizes, out, a, b, added, alpha, beta)) return;

  std::int64_t last = std::max({sizes.m, sizes.n, sizes.k}) + (1 << 16);
  for (const Matrix* const one : {&out, &a, &b, added}) {
    if (one != nullptr) last = std::max(last, last_place(one->tensor));
  }
  const bool small = last < std::numeric_limits<std::int32_t>::max();
  const bool narrow = sizes.n <= 64 && sizes.m > 96;
  const Blocks blocks = blocks_of(device, type == c10::ScalarType::Long ? 8 : 4, narrow);
  Blocks tile = blocks;
  if (device.is_cpu) {
    divide(device, sizes, tile);
  } else {
    tile.m = tile.n = 64;  // SIDE
  }

  std::uint64_t macros = (small ? 1U : 0U) | (added != nullptr ? 2U : 0U) |
                         (a.window != nullptr ? 4U : 0U) | (b.window != nullptr ? 8U : 0U) |
                         (narrow ? 16U : 0U);
  macros = macros << 4 | static_cast<unsigned>(dtype_of(type).code);
  macros = macros << 4 | static_cast<unsigned>(dtype_of(out.tensor.scalar_type()).code);
  Launch launch(op, index, Variant{"matmul", "matmul", nullptr, macros},
                [&] { return defines_of(blocks, small, out, a, b, added != nullptr); });
  const bool windows = a.window != nullptr || b.window != nullptr;
  if (small) {
    pass(launch, Problem<std::int32_t>(sizes, tile, out, a, b, added), windows);
  } else {
    pass(launch, Problem<std::int64_t>(sizes, tile, out, a, b, added), windows);
  }
  launch.number(alpha, type).output(out.tensor).tensor(a.tensor).tensor(b.tensor);
  if (added != nullptr) launch.number(beta, type).tensor(added->tensor);
  const auto tiles = static_cast<std::size_t>(ceiling(sizes.n, tile.n) * ceiling(sizes.m, tile.m) *
                                              sizes.batches * sizes.groups);
  const std::size_t side = device.is_cpu ? 1 : 16;  // DEPTH
  launch.run({tiles, 1, 1}, {side, side, 1});
}

}  // namespace ocl
