// Convolutions in which every channel of the large image has a group of its own: too little work
// for a product of matrices.

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "convolution.h"
#include "dtypes.h"
#include "launch.h"

namespace ocl {

namespace {

/// `Shape` of kernels/depthwise.cl.
template <class Index>
std::array<Index, 23> shape(const Convolution& c, const at::Tensor& to, const at::Tensor& from,
                            const at::Tensor& weight, std::int64_t times) {
  std::array<Index, 23> all{};
  auto next = all.begin();
  for (const std::int64_t one :
       {to.size(0),     to.size(1),     to.size(2),     to.size(3),     from.size(2),
        from.size(3),   weight.size(2), weight.size(3), c.stride_y,     c.stride_x,
        c.padding_y,    c.padding_x,    c.dilation_y,   c.dilation_x,   times,
        from.stride(0), from.stride(1), from.stride(2), from.stride(3), to.stride(0),
        to.stride(1),   to.stride(2),   to.stride(3)}) {
    *next++ = static_cast<Index>(one);
  }
  return all;
}

bool is_small(const at::Tensor& tensor) {
  std::int64_t last = tensor.numel();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += tensor.size(i) * tensor.stride(i);
  return last < std::numeric_limits<std::int32_t>::max() / 2;
}

/// Sets the kernel's shape; `to` is what the shape describes as the result.
template <class Run>
void launch(const char* function, const Convolution& c, const at::Tensor& to,
            const at::Tensor& from, const at::Tensor& weight, bool bias, bool spread,
            const Run& run) {
  const at::Tensor& large = spread ? to : from;
  const at::Tensor& small_image = spread ? from : to;
  const bool small = is_small(to) && is_small(from);
  const std::int64_t times = small_image.size(1) / std::max<std::int64_t>(large.size(1), 1);
  const auto dtype = dtype_of(to.scalar_type());
  const std::uint64_t macros = (small ? 1U : 0U) | (bias ? 2U : 0U) | (spread ? 4U : 0U) |
                               static_cast<unsigned>(dtype.code) << 4;
  Launch one("convolution", to.device().index(), {"depthwise", function, nullptr, macros}, [&] {
    return std::string("#define INDEX ") + (small ? "int" : "long") + "\n#define TYPE " +
           dtype.name + (bias ? "\n#define BIAS" : "") + (spread ? "\n#define SPREAD" : "") + "\n";
  });
  if (small) {
    one.value(shape<std::int32_t>(c, to, from, weight, times));
  } else {
    one.value(shape<std::int64_t>(c, to, from, weight, times));
  }
  run(one);
}

void fill(const Convolution& c, const at::Tensor& from, const at::Tensor& weight,
          const at::Tensor& bias, const at::Tensor& to, bool spread) {
  if (to.numel() == 0) return;
  launch("depthwise", c, to, from, weight, bias.defined(), spread, [&](Launch& one) {
    one.output(to).tensor(from).tensor(weight);
    if (bias.defined()) one.tensor(bias);
    one.run_for(static_cast<std::size_t>(to.numel()));
  });
}

}  // namespace

void fill_small_depthwise(const Convolution& c, const at::Tensor& large, const at::Tensor& weight,
                          const at::Tensor& bias, const at::Tensor& small) {
  fill(c, large, weight, bias, small, false);
}

void fill_large_depthwise(const Convolution& c, const at::Tensor& small, const at::Tensor& weight,
                          const at::Tensor& bias, const at::Tensor& large) {
  fill(c, small, weight, bias, large, true);
}

void fill_weight_depthwise(const Convolution& c, const at::Tensor& large, const at::Tensor& small,
                           const at::Tensor& weight) {
  if (weight.numel() == 0) return;
  launch("depthwise_weight", c, small, large, weight, false, false, [&](Launch& one) {
    const std::size_t group = device_at(weight.device().index()).is_cpu ? 1 : 128;  // GROUP
    one.output(weight).tensor(large).tensor(small);
    one.run({static_cast<std::size_t>(weight.numel()), 1, 1}, {group, 1, 1});
  });
}

}  // namespace ocl
