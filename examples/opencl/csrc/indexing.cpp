#include "indexing.h"

#include <algorithm>
#include <array>
#include <string>

#include "dtypes.h"
#include "launch.h"

namespace ocl {

namespace {

constexpr std::size_t kMost = 8;  // dimensions
constexpr std::size_t kStrides = 2 + kMostChoosers;

/// A dimension of the result; the strides are those of the data, of the other tensor, and of the
/// indices.
struct Dimension {
  std::int64_t size;
  std::array<std::int64_t, kStrides> strides{};
};

/// The dimensions, the fastest first. Neighbours that lie one after the other in all tensors are
/// one.
std::vector<Dimension> dimensions(const Chosen& chosen, const at::Tensor& other) {
  std::vector<Dimension> all;
  for (std::int64_t dim = other.dim() - 1; dim >= 0; --dim) {
    if (other.size(dim) == 1) continue;
    Dimension one{other.size(dim)};
    one.strides[0] = chosen.data.stride(dim);
    one.strides[1] = other.stride(dim);
    for (std::size_t i = 0; i < chosen.choosers.size(); ++i) {
      one.strides[2 + i] = chosen.choosers[i].index.stride(dim);
    }
    const auto follows = [&](const Dimension& inner) {
      for (std::size_t i = 0; i < kStrides; ++i) {
        if (one.strides[i] != inner.strides[i] * inner.size) return false;
      }
      return true;
    };
    if (!all.empty() && follows(all.back())) {
      all.back().size *= one.size;
    } else {
      all.push_back(one);
    }
  }
  if (all.empty()) all.push_back({1});
  return all;
}

/// Whether the indices are the same along the first dimension.
bool has_lines(const Dimension& first) {
  return std::all_of(first.strides.begin() + 2, first.strides.end(),
                     [](std::int64_t stride) { return stride == 0; });
}

/// `Layout` of kernels/index.cl.
template <class Index>
struct Layout {
  Index rank;
  std::array<Index, kMost> sizes{}, data{}, other{};
  std::array<std::array<Index, kMost>, kMostChoosers> indices{};
  std::array<Index, kMostChoosers> steps{}, limits{}, dims{};
  Index skipped;

  Layout(const std::vector<Dimension>& all, const Chosen& chosen)
      : rank(static_cast<Index>(all.size())),
        skipped(static_cast<Index>(chosen.skipped.value_or(0))) {
    for (std::size_t d = 0; d < all.size(); ++d) {
      const auto stride = [&](std::size_t i) { return static_cast<Index>(all[d].strides[i]); };
      sizes[d] = static_cast<Index>(all[d].size);
      data[d] = stride(0);
      other[d] = stride(1);
      for (std::size_t i = 0; i < kMostChoosers; ++i) indices[i][d] = stride(2 + i);
    }
    for (std::size_t i = 0; i < chosen.choosers.size(); ++i) {
      steps[i] = static_cast<Index>(chosen.choosers[i].step);
      limits[i] = static_cast<Index>(chosen.choosers[i].limit);
      dims[i] = static_cast<Index>(chosen.choosers[i].dim);
    }
  }
};

/// Whether all offsets fit into 32 bits.
bool is_small(const Chosen& chosen, const at::Tensor& other) {
  std::int64_t last = other.numel();
  const auto add = [&](const at::Tensor& tensor) {
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += tensor.size(i) * tensor.stride(i);
  };
  add(chosen.data);
  add(other);
  for (const Chooser& one : chosen.choosers) {
    last += one.limit * std::max<std::int64_t>(one.step, 1);
    add(one.index);
  }
  return last < std::numeric_limits<std::int32_t>::max();
}

const char* raw_type(std::size_t bytes) {
  return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
}

enum class Direction : std::uint8_t { kRead, kWrite, kAdd };

/// Too many dimensions for a kernel: one after the other, by the first.
void by_parts(const char* op, Direction direction, const Chosen& chosen, const at::Tensor& other);

void run(const char* op, Direction direction, const Chosen& chosen, const at::Tensor& other) {
  if (other.numel() == 0) return;
  TORCH_INTERNAL_ASSERT(chosen.choosers.size() <= kMostChoosers);
  const std::vector<Dimension> all = dimensions(chosen, other);
  if (all.size() > kMost) return by_parts(op, direction, chosen, other);
  const bool small = is_small(chosen, other), lines = has_lines(all[0]);
  const Dtype dtype = dtype_of(chosen.data.scalar_type());
  const std::size_t bytes = chosen.data.itemsize();
  std::uint64_t macros = static_cast<std::uint64_t>(direction) | (small ? 4U : 0U) |
                         (lines ? 8U : 0U) | (chosen.wraps ? 16U : 0U) |
                         (chosen.skipped.has_value() ? 32U : 0U);
  macros = macros << 4 | chosen.choosers.size();
  macros = macros << 4 | (direction == Direction::kAdd ? static_cast<unsigned>(dtype.code) : 15U);
  macros = macros << 4 | bytes;
  Launch launch(op, other.device().index(), {"index", "index", nullptr, macros}, [&] {
    constexpr std::array kDirections = {"READ", "WRITE", "ADD"};
    return std::string("#define ") + kDirections[static_cast<std::size_t>(direction)] +
           "\n#define INDEX " + (small ? "int" : "long") + "\n#define RAW " + raw_type(bytes) +
           "\n#define TYPE " + dtype.name + "\n#define INDICES " +
           std::to_string(chosen.choosers.size()) + (lines ? "\n#define LINES" : "") +
           (chosen.wraps ? "\n#define WRAP" : "") +
           (chosen.skipped.has_value() ? "\n#define SKIP" : "") + "\n";
  });
  if (small) {
    launch.value(static_cast<std::int32_t>(other.numel()));
    launch.value(Layout<std::int32_t>(all, chosen));
  } else {
    launch.value(other.numel()).value(Layout<std::int64_t>(all, chosen));
  }
  const bool reads = direction == Direction::kRead;
  launch.output(reads ? other : chosen.data).tensor(reads ? chosen.data : other).faults();
  for (const Chooser& one : chosen.choosers) launch.tensor(one.index);
  launch.run_for(static_cast<std::size_t>(other.numel()));
}

void by_parts(const char* op, Direction direction, const Chosen& chosen, const at::Tensor& other) {
  for (std::int64_t place = 0; place < other.size(0); ++place) {
    Chosen part = chosen;
    part.data = chosen.data.select(0, place);
    for (Chooser& one : part.choosers) one.index = one.index.select(0, place);
    run(op, direction, part, other.select(0, place));
  }
}

}  // namespace

void read(const char* op, const Chosen& chosen, const at::Tensor& out) {
  run(op, Direction::kRead, chosen, out);
}

void write(const char* op, const Chosen& chosen, const at::Tensor& values) {
  run(op, Direction::kWrite, chosen, values);
}

bool can_add(c10::ScalarType type, int device) {
  if (type == c10::ScalarType::Long) {
    return text_of(device_at(device).id, CL_DEVICE_EXTENSIONS).find("cl_khr_int64_base_atomics") !=
           std::string::npos;
  }
  return type == c10::ScalarType::Float || type == c10::ScalarType::Int;
}

void add(const char* op, const Chosen& chosen, const at::Tensor& values) {
  run(op, Direction::kAdd, chosen, values);
}

}  // namespace ocl
