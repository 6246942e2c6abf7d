// Losses of targets and their gradients.

#include <cmath>
#include <optional>
#include <tuple>

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"
#include "reduce.h"
#include "rows.h"

namespace ocl {

namespace {

constexpr Expression kZero{"zero", "0"};

at::Tensor dense(at::OptionalTensorRef tensor) {
  return tensor.has_value() ? tensor->contiguous() : at::Tensor();
}

/// Whether the kernels take the targets and the factors.
bool takes(const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight) {
  return is_floating(self.scalar_type()) && target.scalar_type() == at::kLong &&
         (!weight.defined() || weight.scalar_type() == self.scalar_type());
}

/// A tensor like the result, or the result itself if its elements lie one after the other.
at::Tensor direct(const at::Tensor& out) {
  return out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

std::int64_t classes_of(const at::Tensor& self) { return self.size(-1); }

}  // namespace

void nll_loss(const at::Tensor& self, const at::Tensor& target, at::OptionalTensorRef weight,
              std::int64_t reduction, std::int64_t ignore_index, const at::Tensor& output,
              const at::Tensor& total_weight) {
  const at::Tensor w = dense(weight);
  const auto fall_back = [&] {
    at::Tensor to = output;
    at::Tensor total = total_weight;
    Fallback<std::tuple<at::Tensor&, at::Tensor&>(
        const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::int64_t,
        c10::SymInt, at::Tensor&, at::Tensor&)>::call("aten::nll_loss_forward", "output", self,
                                                      target, optional(w), reduction, ignore_index,
                                                      to, total);
  };
  if (self.numel() == 0 || !takes(self, target, w)) return fall_back();
  const std::int64_t rows = self.numel() / classes_of(self);
  const bool each = reduction == at::Reduction::None && self.dim() == 2;
  const at::Tensor losses =
      each ? direct(output) : at::empty({rows}, self.options().dtype(at::kFloat));
  const at::Tensor factors = at::empty({rows}, self.options().dtype(at::kFloat));
  const at::Tensor from = self.contiguous();
  const at::Tensor classes = target.contiguous();
  const int device = self.device().index();
  RowLaunch launch("nll_loss", device, "nll_loss", "forward", 1,
                   {{"IN", self}, {"TARGET", target}, {"WEIGHT", w}, {"OUT", losses}});
  launch.value(rows).value(classes_of(self)).value(ignore_index);
  launch.output(losses).output(factors).tensor(from).tensor(classes).tensor(w);
  launch.run_for(static_cast<std::size_t>(rows));

  const at::Tensor total = at::empty({}, factors.options());
  reduce(kSum, factors, std::nullopt, at::kFloat, total);
  // Where it costs little to wait, the CPU's function raises the error of a wrong target. Nothing
  // can wait for a graph that is recorded.
  if (device_at(device).is_cpu && !launch.recorded() && std::isnan(total.item<float>())) {
    return fall_back();
  }
  if (each) {
    if (!losses.is_same(output)) output.copy_(losses);
    elementwise(kZero, total_weight.scalar_type(), total_weight, {});
    return;
  }
  const at::Tensor sum = at::empty({}, factors.options());
  reduce(kSum, losses, std::nullopt, at::kFloat, sum);
  if (reduction == at::Reduction::Mean) {
    elementwise({"nll_loss", "a / b"}, at::kFloat, output, {&sum, &total});
  } else {
    elementwise({"nll_loss", "a"}, at::kFloat, output, {&sum});
  }
  elementwise({"nll_loss", "a"}, at::kFloat, total_weight, {&total});
}

void nll_loss_backward(const at::Tensor& grad_output, const at::Tensor& self,
                       const at::Tensor& target, at::OptionalTensorRef weight,
                       std::int64_t reduction, std::int64_t ignore_index,
                       const at::Tensor& total_weight, const at::Tensor& grad_input) {
  const at::Tensor w = dense(weight);
  if (self.numel() == 0 || !takes(self, target, w) ||
      grad_output.scalar_type() != total_weight.scalar_type()) {
    at::Tensor to = grad_input;
    Fallback<at::Tensor&(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         const std::optional<at::Tensor>&, std::int64_t, c10::SymInt,
                         const at::Tensor&, at::Tensor&)>::call("aten::nll_loss_backward",
                                                                "grad_input", grad_output, self,
                                                                target, optional(w), reduction,
                                                                ignore_index, total_weight, to);
    return;
  }
  const std::int64_t rows = self.numel() / classes_of(self);
  const bool each = reduction == at::Reduction::None && self.dim() == 2;
  const at::Tensor to = direct(grad_input);
  elementwise(kZero, to.scalar_type(), to, {});
  const bool mean = reduction == at::Reduction::Mean;
  const at::Tensor from = grad_output.contiguous();
  const at::Tensor classes = target.contiguous();
  RowLaunch launch("nll_loss_backward", self.device().index(), "nll_loss", "backward", 1,
                   {{"TARGET", target}, {"WEIGHT", w}, {"OUT", to}, {"GRAD", grad_output}}, "",
                   mean ? "#define MEAN\n" : "", mean ? 1 : 0);
  launch.value(rows).value(classes_of(self)).value(ignore_index);
  launch.value(std::int64_t{each ? 1 : 0});
  launch.output(to).tensor(from).tensor(total_weight).tensor(classes).tensor(w);
  launch.run_for(static_cast<std::size_t>(rows));
  if (!to.is_same(grad_input)) grad_input.copy_(to);
}

void mse_loss(const at::Tensor& self, const at::Tensor& target, std::int64_t reduction,
              const at::Tensor& out) {
  constexpr Expression kSquares{"mse_loss", "(a - b) * (a - b)"};
  if (reduction == at::Reduction::None) {
    return elementwise(kSquares, out.scalar_type(), out, {&self, &target});
  }
  const auto sizes = at::infer_size_dimvector(self.sizes(), target.sizes());
  const at::Tensor squares = at::empty(sizes, self.options().dtype(at::kFloat));
  elementwise(kSquares, at::kFloat, squares, {&self, &target});
  const bool mean = reduction == at::Reduction::Mean;
  reduce(mean ? kMean : kSum, squares, std::nullopt, at::kFloat, out,
         static_cast<double>(squares.numel()));
}

at::Tensor mse_loss_backward(const at::Tensor& grad_output, const at::Tensor& self,
                             const at::Tensor& target, std::int64_t reduction) {
  if (!is_floating(self.scalar_type()) || self.sizes() != target.sizes()) {
    return Fallback<decltype(mse_loss_backward)>::call("aten::mse_loss_backward", "", grad_output,
                                                       self, target, reduction);
  }
  at::Tensor out = at::empty_like(self);
  const double factor =
      reduction == at::Reduction::Mean ? 2.0 / static_cast<double>(self.numel()) : 2.0;
  elementwise({"mse_loss_backward", "x * (a - b) * c"}, at::kFloat, out,
              {&self, &target, &grad_output}, factor);
  return out;
}

}  // namespace ocl
