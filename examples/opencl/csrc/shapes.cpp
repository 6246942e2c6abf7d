// Operators that put elements together, or make them of their places.

#include <cstdint>
#include <limits>
#include <string>

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "dtypes.h"
#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"
#include "launch.h"

namespace ocl {

namespace {

void triangle(const char* op, bool lower, const at::Tensor& self, std::int64_t diagonal,
              const at::Tensor& out) {
  if (out.numel() == 0) return;
  const bool small = out.numel() < std::numeric_limits<std::int32_t>::max();
  const at::Tensor in = self.contiguous();
  const at::Tensor to = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const std::size_t bytes = out.itemsize();
  const std::uint64_t macros = (small ? 1U : 0U) | (lower ? 2U : 0U) | bytes << 2;
  Launch launch(op, out.device().index(), {"triangle", "triangle", nullptr, macros}, [&] {
    const char* const raw = bytes == 1   ? "uchar"
                            : bytes == 2 ? "ushort"
                            : bytes == 4 ? "uint"
                                         : "ulong";
    return std::string("#define INDEX ") + (small ? "int" : "long") + "\n#define RAW " + raw +
           (lower ? "\n#define LOWER\n" : "\n");
  });
  for (const std::int64_t one : {out.numel(), out.size(-2), out.size(-1)}) {
    if (small) {
      launch.value(static_cast<std::int32_t>(one));
    } else {
      launch.value(one);
    }
  }
  launch.value(diagonal).output(to).tensor(in);
  launch.run_for(static_cast<std::size_t>(out.numel()));
  if (!to.is_same(out)) out.copy_(to);
}

}  // namespace

void tril(const at::Tensor& self, std::int64_t diagonal, const at::Tensor& out) {
  triangle("tril", true, self, diagonal, out);
}

void triu(const at::Tensor& self, std::int64_t diagonal, const at::Tensor& out) {
  triangle("triu", false, self, diagonal, out);
}

// The elementwise kernel copies and converts.
void cat(const at::ITensorListRef& tensors, std::int64_t dim, std::int64_t, bool, bool, bool,
         at::MemoryFormat, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    at::assert_no_overlap(out, tensor);
    // PyTorch leaves out tensors of one dimension without elements, whatever the others have.
    if (tensor.dim() == 1 && tensor.numel() == 0) continue;
    const at::Tensor part = out.narrow(dim, begin, tensor.size(dim));
    elementwise({"cat", "a"}, tensor.scalar_type(), part, {&tensor});
    begin += tensor.size(dim);
  }
}

at::Tensor& arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                   at::Tensor& out) {
  // PyTorch's own checks, and its way to count.
  const at::Tensor shape = at::arange(start, end, step, out.options().device(at::kMeta));
  if (out.numel() != shape.numel()) {
    // PyTorch warns about an `out` with elements that is too small or too large.
    if (out.numel() > 0) {
      return Fallback<decltype(arange)>::call("aten::arange", "start_out", start, end, step, out);
    }
    out.resize_(shape.sizes());
  }
  const at::Tensor to = out.is_contiguous() ? out : at::empty(shape.sizes(), out.options());
  elementwise({"arange", is_floating(out.scalar_type()) ? "fma((float)place, y, x)"
                                                        : "x + (Number)place * y"},
              out.scalar_type(), to, {}, start, step);
  if (!to.is_same(out)) out.copy_(to.view_as(out));
  return out;
}

}  // namespace ocl
