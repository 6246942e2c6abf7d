// softmax and log_softmax along any dimension, and their gradients. PyTorch's meta functions have
// checked the call and made the result.

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>

#include "kernels.h"
#include "rows.h"

namespace ocl {

namespace {

/// Tensors whose dimension is the last one, and contiguous there: the kernels compute rows.
struct Rows {
  Rows(const at::Tensor& out, std::int64_t dim)
      : out_(out), moved_(moved(out, dim)), dim_(dim), n(out.dim() == 0 ? 1 : out.size(dim)) {
    to = moved_.is_contiguous() ? moved_ : at::empty(moved_.sizes(), out.options());
  }

  at::Tensor in(const at::Tensor& tensor) const { return moved(tensor, dim_).contiguous(); }

  void finish() const {
    if (!to.is_same(moved_)) moved_.copy_(to);
  }

 private:
  static at::Tensor moved(const at::Tensor& tensor, std::int64_t dim) {
    return tensor.dim() == 0 ? tensor : tensor.movedim(dim, -1);
  }

  at::Tensor out_;
  at::Tensor moved_;
  std::int64_t dim_;

 public:
  std::int64_t n;  ///< the length of a row
  at::Tensor to;   ///< where a kernel writes the rows
};

void forward(const char* op, const std::string& texts, const at::Tensor& self, std::int64_t dim,
             const at::Tensor& out) {
  if (out.numel() == 0) return;
  const Rows rows(out, at::maybe_wrap_dim(dim, out.dim()));
  const at::Tensor in = rows.in(self);
  RowLaunch launch(op, out.device().index(), "softmax", "forward", rows.n,
                   {{"NUMBER", at::kFloat}, {"IN", self}, {"OUT", out}}, op, texts);
  launch.value(out.numel() / rows.n).value(rows.n);
  launch.output(rows.to).tensor(in);
  launch.run(out.numel() / rows.n);
  rows.finish();
}

void backward(const char* op, const std::string& texts, const at::Tensor& grad,
              const at::Tensor& output, std::int64_t dim, const at::Tensor& out) {
  if (out.numel() == 0) return;
  const Rows rows(out, at::maybe_wrap_dim(dim, out.dim()));
  const at::Tensor above = rows.in(grad);
  const at::Tensor result = rows.in(output);
  RowLaunch launch(op, out.device().index(), "softmax", "backward", rows.n,
                   {{"NUMBER", at::kFloat}, {"IN", output}, {"OUT", out}, {"GRAD", grad}}, op,
                   texts);
  launch.value(out.numel() / rows.n).value(rows.n);
  launch.output(rows.to).tensor(above).tensor(result);
  launch.run(out.numel() / rows.n);
  rows.finish();
}

}  // namespace

void softmax(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& out) {
  forward("softmax", "", self, dim, out);
}

void log_softmax(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& out) {
  forward("log_softmax", "#define LOG\n", self, dim, out);
}

void softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                      at::ScalarType, const at::Tensor& out) {
  backward("softmax_backward", "", grad, output, dim, out);
}

void log_softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                          at::ScalarType, const at::Tensor& out) {
  backward("log_softmax_backward", "#define LOG\n", grad, output, dim, out);
}

}  // namespace ocl
