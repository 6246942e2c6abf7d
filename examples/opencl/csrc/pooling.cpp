// Pooling of two-dimensional images. PyTorch's meta functions have checked the calls and made the
// results; the adaptive ones have no meta function.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include "dtypes.h"
#include "kernels.h"
#include "launch.h"

namespace ocl {

namespace {

/// The windows of a pooling, as operators have them: one number counts for both axes.
struct Pooling {
  at::IntArrayRef kernel, stride, padding = {0, 0}, dilation = {1, 1};
  bool counts_padding = true;
  std::int64_t divisor = 0;
  bool adaptive = false;

  static std::int64_t of(at::IntArrayRef values, std::size_t axis) {
    return values.empty() ? 1 : values[values.size() == 1 ? 0 : axis];
  }
};

/// An image with a batch.
at::Tensor batched(const at::Tensor& image) {
  return image.dim() == 3 ? image.unsqueeze(0) : image;
}

bool is_small(const at::Tensor& tensor) {
  std::int64_t last = tensor.numel();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += tensor.size(i) * tensor.stride(i);
  return last < std::numeric_limits<std::int32_t>::max() / 2;
}

/// `Shape` of kernels/pooling.cl.
template <class Index>
std::array<Index, 28> shape(const Pooling& pooling, const at::Tensor& large,
                            const at::Tensor& small, const at::Tensor& indices) {
  std::vector<std::int64_t> all = {large.size(0), large.size(1)};
  for (const std::size_t axis : {0, 1}) {
    const auto of = [&](at::IntArrayRef values) { return Pooling::of(values, axis); };
    const auto dim = static_cast<std::int64_t>(axis) + 2;
    all.insert(all.end(),
               {of(pooling.kernel), of(pooling.stride.empty() ? pooling.kernel : pooling.stride),
                of(pooling.padding), of(pooling.dilation), large.size(dim), small.size(dim)});
  }
  for (const at::Tensor* const image : {&large, &small, &indices}) {
    all.insert(all.end(), image->strides().begin(), image->strides().end());
  }
  all.insert(all.end(), {pooling.counts_padding ? 1 : 0, pooling.divisor});
  std::array<Index, 28> result{};
  std::copy(all.begin(), all.end(), result.begin());
  return result;
}

/// Runs a kernel that writes `to`, which is `large` or `small`, from the other one. `indices` are
/// those of a maximum, which writes or reads them.
void pool(const char* op, const char* function, const Pooling& pooling, const at::Tensor& to,
          const at::Tensor& large, const at::Tensor& small, const at::Tensor& indices) {
  at::assert_no_internal_overlap(to);
  if (to.numel() == 0) return;
  const at::Tensor images[] = {batched(large), batched(small),
                               batched(indices.defined() ? indices : small)};
  const bool narrow = std::all_of(std::begin(images), std::end(images), is_small);
  const Dtype dtype = dtype_of(to.scalar_type());
  const std::uint64_t macros =
      (narrow ? 1U : 0U) | (pooling.adaptive ? 2U : 0U) | static_cast<unsigned>(dtype.code) << 2;
  Launch launch(op, to.device().index(), {"pooling", function, nullptr, macros}, [&] {
    return std::string("#define INDEX ") + (narrow ? "int" : "long") + "\n#define TYPE " +
           dtype.name + (pooling.adaptive ? "\n#define ADAPTIVE" : "") + "\n";
  });
  if (narrow) {
    launch.value(shape<std::int32_t>(pooling, images[0], images[1], images[2]));
  } else {
    launch.value(shape<std::int64_t>(pooling, images[0], images[1], images[2]));
  }
  const bool backward = to.is_same(large);
  launch.output(to);
  if (indices.defined() && !backward) launch.output(indices);
  launch.tensor(backward ? small : large);
  if (indices.defined() && backward) launch.tensor(indices);
  launch.run_for(static_cast<std::size_t>(to.numel()));
}

/// Raises PyTorch's error for dtypes that it does not pool either: others than floating-point ones
/// and these.
void check_dtype(const char* kernel, const at::Tensor& self,
                 std::initializer_list<c10::ScalarType> integers = {}) {
  const auto type = self.scalar_type();
  const bool known = std::find(integers.begin(), integers.end(), type) != integers.end();
  TORCH_CHECK_NOT_IMPLEMENTED(is_floating(type) || known, '"', kernel, "\" not implemented for '",
                              type, "'");
}

}  // namespace

void max_pool2d_with_indices(const at::Tensor& self, at::IntArrayRef kernel_size,
                             at::IntArrayRef stride, at::IntArrayRef padding,
                             at::IntArrayRef dilation, bool, const at::Tensor& out,
                             const at::Tensor& indices) {
  check_dtype("max_pool2d", self, {at::kLong, at::kInt});
  pool("max_pool2d", "max_pool", {kernel_size, stride, padding, dilation}, out, self, out, indices);
}

void max_pool2d_with_indices_backward(const at::Tensor& grad_output, const at::Tensor& self,
                                      at::IntArrayRef kernel_size, at::IntArrayRef stride,
                                      at::IntArrayRef padding, at::IntArrayRef dilation, bool,
                                      const at::Tensor& indices, const at::Tensor& grad_input) {
  check_dtype("max_pool2d_backward", self);
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(), "expected dtype ",
              self.scalar_type(), " for `grad_output` but got dtype ", grad_output.scalar_type());
  pool("max_pool2d_backward", "max_pool_backward", {kernel_size, stride, padding, dilation},
       grad_input, grad_input, grad_output, indices);
}

void avg_pool2d(const at::Tensor& self, std::int64_t kernel_y, std::int64_t kernel_x,
                std::int64_t stride_y, std::int64_t stride_x, std::int64_t padding_y,
                std::int64_t padding_x, bool, bool counts_padding,
                std::optional<std::int64_t> divisor, const at::Tensor& out) {
  check_dtype("avg_pool2d", self, {at::kLong});
  const std::array kernel = {kernel_y, kernel_x}, stride = {stride_y, stride_x};
  const std::array padding = {padding_y, padding_x};
  Pooling pooling{kernel, stride, padding};
  pooling.counts_padding = counts_padding;
  pooling.divisor = divisor.value_or(0);
  pool("avg_pool2d", "avg_pool", pooling, out, self, out, at::Tensor());
}

void avg_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         at::IntArrayRef kernel_size, at::IntArrayRef stride,
                         at::IntArrayRef padding, bool, bool counts_padding,
                         std::optional<std::int64_t> divisor, const at::Tensor& grad_input) {
  check_dtype("avg_pool2d_backward_out_frame", self, {at::kLong});
  Pooling pooling{kernel_size, stride, padding};
  pooling.counts_padding = counts_padding;
  pooling.divisor = divisor.value_or(0);
  pool("avg_pool2d_backward", "avg_pool_backward", pooling, grad_input, grad_input, grad_output,
       at::Tensor());
}

at::Tensor adaptive_avg_pool2d(const at::Tensor& self, at::IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(output_size[0] >= 0 && output_size[1] >= 0,
              "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 ",
              "but received {", output_size[0], ", ", output_size[1], "}");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", self.sizes());
  for (const std::int64_t dim : {-2, -1}) {
    TORCH_CHECK(self.size(dim) > 0,
                "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch "
                "dimensions, but input has sizes ",
                self.sizes(), " with dimension ", dim + self.dim(), " being empty");
  }
  check_dtype("adaptive_avg_pool2d", self);
  at::DimVector sizes(self.sizes());
  std::copy(output_size.begin(), output_size.end(), sizes.end() - 2);
  at::Tensor out = at::empty(sizes, self.options().memory_format(self.suggest_memory_format()));
  Pooling pooling;
  pooling.adaptive = true;
  pool("adaptive_avg_pool2d", "avg_pool", pooling, out, self, out, at::Tensor());
  return out;
}

at::Tensor adaptive_avg_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self) {
  TORCH_CHECK(grad_output.dim() == self.dim(),
              "adaptive_avg_pool2d_backward(): Expected "
              "grad_output to have the dimensions of the input, but got ",
              grad_output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(), "expected dtype ",
              self.scalar_type(), " for `grad_output` but got dtype ", grad_output.scalar_type());
  check_dtype("adaptive_avg_pool2d_backward", self);
  at::Tensor grad_input =
      at::empty(self.sizes(), self.options().memory_format(self.suggest_memory_format()));
  Pooling pooling;
  pooling.adaptive = true;
  pool("adaptive_avg_pool2d_backward", "avg_pool_backward", pooling, grad_input, grad_input,
       grad_output, at::Tensor());
  return grad_input;
}

}  // namespace ocl
