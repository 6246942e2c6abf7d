// batch_norm, group_norm and their gradients: rows of a channel, each scaled by numbers of its own.

#include <array>
#include <optional>
#include <tuple>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"
#include "reduce.h"
#include "rows.h"

namespace ocl {

namespace {

using Optional = std::optional<at::Tensor>;

constexpr std::array<std::int64_t, 2> kAllButChannels = {0, 2};

bool given(const Optional& tensor) { return tensor.has_value() && tensor->defined(); }

/// A parameter in a shape that broadcasts, or a number for one that is missing.
at::Tensor parameter(const Optional& tensor, at::IntArrayRef shape, double otherwise) {
  return given(tensor) ? tensor->reshape(shape) : at::scalar_tensor(otherwise, at::kFloat);
}

at::Tensor numbers(const at::Tensor& like, at::IntArrayRef shape) {
  return at::empty(shape, like.options().dtype(at::kFloat));
}

/// The value of an expression for small float32 tensors, in a shape to which they broadcast.
at::Tensor compute(const Expression& expression, at::IntArrayRef shape, const at::Tensor& a,
                   const at::Tensor& b, const at::Tensor& c, double x = 0, double y = 0) {
  const at::Tensor out = numbers(a, shape);
  elementwise(expression, at::kFloat, out, {&a, &b, &c}, x, y);
  return out;
}

at::Tensor rstd_of(const at::Tensor& variance, double eps) {
  const at::Tensor out = numbers(variance, variance.sizes());
  elementwise({"rstd", "1 / sqrt(a + x)"}, at::kFloat, out, {&variance}, eps);
  return out;
}

/// a * in + b, of the numbers of each row of `n` neighbours.
at::Tensor scaled(const at::Tensor& in, std::int64_t n, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor out = at::empty(in.sizes(), in.options());
  const std::int64_t count = in.numel() / n;
  RowLaunch launch("scale", in.device().index(), "norms", "scale", n,
                   {{"NUMBER", at::kFloat}, {"IN", in}, {"OUT", out}});
  launch.value(count).value(n).value(a.numel());
  launch.output(out).tensor(in).tensor(a).tensor(b);
  launch.run(count);
  return out;
}

/// a * grad + b * (in - m) + c.
at::Tensor scaled(const at::Tensor& grad, const at::Tensor& in, std::int64_t n, const at::Tensor& a,
                  const at::Tensor& b, const at::Tensor& c, const at::Tensor& m) {
  const at::Tensor out = at::empty(in.sizes(), in.options());
  const std::int64_t count = in.numel() / n;
  RowLaunch launch("scale_backward", in.device().index(), "norms", "scale_backward", n,
                   {{"NUMBER", at::kFloat}, {"IN", in}, {"OUT", out}, {"GRAD", grad}});
  launch.value(count).value(n).value(a.numel());
  launch.output(out).tensor(grad).tensor(in).tensor(a).tensor(b).tensor(c).tensor(m);
  launch.run(count);
  return out;
}

/// Of each row the sums of `grad`, and of grad * (in - m).
std::pair<at::Tensor, at::Tensor> row_sums(const at::Tensor& grad, const at::Tensor& in,
                                           std::int64_t n, const at::Tensor& m) {
  const std::int64_t count = in.numel() / n;
  const at::Tensor sums = numbers(in, {count});
  const at::Tensor products = numbers(in, {count});
  RowLaunch launch("row_sums", in.device().index(), "norms", "row_sums", n,
                   {{"NUMBER", at::kFloat}, {"IN", in}, {"GRAD", grad}});
  launch.value(count).value(n).value(m.numel());
  launch.output(sums).output(products).tensor(grad).tensor(in).tensor(m);
  launch.run(count);
  return {sums, products};
}

/// Sums of the first dimension, in a parameter's dtype.
at::Tensor first_sums(const at::Tensor& of, const Optional& parameter) {
  const auto dtype = given(parameter) ? parameter->scalar_type() : at::kFloat;
  at::Tensor out = at::empty(of.sizes().slice(1), of.options().dtype(dtype));
  reduce(kSum, of, std::array<std::int64_t, 1>{0}, at::kFloat, out);
  return out;
}

/// Whether the kernels take a tensor of channels and its parameters.
bool takes(const at::Tensor& input, std::initializer_list<const Optional*> parameters) {
  if (input.numel() == 0 || input.dim() < 2 || !is_floating(input.scalar_type())) return false;
  return std::all_of(parameters.begin(), parameters.end(), [](const Optional* one) {
    return !given(*one) || is_floating((*one)->scalar_type());
  });
}

/// A result in the order of the input's memory: channels last, or not.
at::Tensor ordered_like(const at::Tensor& out, const at::Tensor& input) {
  return out.contiguous(input.suggest_memory_format());
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& input, const Optional& weight, const Optional& bias,
    const Optional& running_mean, const Optional& running_var, bool training, double momentum,
    double eps) {
  if (!takes(input, {&weight, &bias, &running_mean, &running_var})) {
    return Fallback<decltype(batch_norm)>::call("aten::native_batch_norm", "", input, weight, bias,
                                                running_mean, running_var, training, momentum, eps);
  }
  const std::int64_t channels = input.size(1);
  const std::int64_t n = input.numel() / input.size(0) / channels;
  const at::Tensor in = input.contiguous().view({input.size(0), channels, n});
  at::Tensor mean;
  at::Tensor rstd;
  if (training) {
    const double count = static_cast<double>(in.numel()) / static_cast<double>(channels);
    mean = numbers(in, {channels});
    const at::Tensor variance = numbers(in, {channels});
    reduce(kMean, in, kAllButChannels, at::kFloat, mean, count);
    reduce(kVariance, in, kAllButChannels, at::kFloat, variance, count, mean);
    rstd = rstd_of(variance, eps);
    constexpr const char* kMove = "a + x * (b * y - a)";
    if (given(running_mean)) {
      elementwise({"running_mean", kMove}, at::kFloat, *running_mean, {&*running_mean, &mean},
                  momentum, 1);
    }
    if (given(running_var)) {
      elementwise({"running_var", kMove}, at::kFloat, *running_var, {&*running_var, &variance},
                  momentum, count / (count - 1));
    }
  } else {
    mean = running_mean->to(at::kFloat).contiguous();
    rstd = rstd_of(*running_var, eps);
  }
  const at::Tensor w = parameter(weight, {channels}, 1);
  const at::Tensor b = parameter(bias, {channels}, 0);
  const at::Tensor factors = compute({"factors", "a * b"}, {channels}, rstd, w, b);
  const at::Tensor summands = compute({"summands", "c - a * b"}, {channels}, mean, factors, b);
  const at::Tensor out = scaled(in, n, factors, summands).view(input.sizes());
  if (!training) mean = rstd = numbers(in, {0});
  return {ordered_like(out, input), mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, const Optional& weight,
    const Optional& running_mean, const Optional& running_var, const Optional& save_mean,
    const Optional& save_invstd, bool train, double eps, std::array<bool, 3> output_mask) {
  if (!takes(input, {&weight, &running_mean, &running_var})) {
    return Fallback<decltype(batch_norm_backward)>::call(
        "aten::native_batch_norm_backward", "", grad_out, input, weight, running_mean, running_var,
        save_mean, save_invstd, train, eps, output_mask);
  }
  const std::int64_t channels = input.size(1);
  const std::int64_t n = input.numel() / input.size(0) / channels;
  const at::Tensor in = input.contiguous().view({input.size(0), channels, n});
  const at::Tensor grad = grad_out.contiguous().view(in.sizes());
  const at::Tensor mean = (train ? *save_mean : *running_mean).to(at::kFloat).contiguous();
  const at::Tensor rstd =
      train ? save_invstd->to(at::kFloat).contiguous() : rstd_of(*running_var, eps);
  const auto [sums, products] = row_sums(grad, in, n, mean);
  const at::Tensor sum = first_sums(sums.view({in.size(0), channels}), std::nullopt);
  const at::Tensor product = first_sums(products.view({in.size(0), channels}), std::nullopt);

  at::Tensor grad_input;
  if (output_mask[0]) {
    const at::Tensor w = parameter(weight, {channels}, 1);
    const at::Tensor a = compute({"factors", "a * b"}, {channels}, rstd, w, sum);
    if (train) {
      const double share = static_cast<double>(channels) / static_cast<double>(in.numel());
      const at::Tensor b =
          compute({"of distances", "-x * a * b * b * c"}, {channels}, a, rstd, product, share);
      const at::Tensor c = compute({"summands", "-x * a * c"}, {channels}, a, rstd, sum, share);
      grad_input = scaled(grad, in, n, a, b, c, mean);
    } else {
      const at::Tensor none = compute({"zeros", "0"}, {channels}, rstd, w, sum);
      grad_input = scaled(grad, n, a, none);
    }
    grad_input = ordered_like(grad_input.view(input.sizes()), input);
  }
  at::Tensor grad_weight;
  if (output_mask[1]) {
    grad_weight = compute({"grad_weight", "a * b"}, {channels}, product, rstd, sum);
  }
  at::Tensor grad_bias = output_mask[2] ? sum : at::Tensor();
  if (given(weight) && grad_weight.defined()) grad_weight = grad_weight.to(weight->scalar_type());
  if (given(weight) && grad_bias.defined()) grad_bias = grad_bias.to(weight->scalar_type());
  return {grad_input, grad_weight, grad_bias};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> group_norm(const at::Tensor& input,
                                                          const Optional& weight,
                                                          const Optional& bias, std::int64_t N,
                                                          std::int64_t C, std::int64_t HxW,
                                                          std::int64_t group, double eps) {
  if (!takes(input, {&weight, &bias}) || group < 1 || C % group != 0 ||
      input.numel() != N * C * HxW) {
    return Fallback<decltype(group_norm)>::call("aten::native_group_norm", "", input, weight, bias,
                                                N, C, HxW, group, eps);
  }
  const std::int64_t each = C / group;
  const at::Tensor in = input.contiguous().view({N * group, each * HxW});
  const at::Tensor mean = numbers(in, {N, group});
  const at::Tensor variance = numbers(in, {N, group});
  const auto count = static_cast<double>(in.size(1));
  const std::array<std::int64_t, 1> last = {1};
  reduce(kMean, in, last, at::kFloat, mean.view({N * group}), count);
  reduce(kVariance, in, last, at::kFloat, variance.view({N * group}), count, mean);
  const at::Tensor rstd = rstd_of(variance, eps);
  const at::Tensor w = parameter(weight, {group, each}, 1);
  const at::Tensor b = parameter(bias, {group, each}, 0);
  const at::Tensor factors =
      compute({"factors", "a * b"}, {N, group, each}, rstd.unsqueeze(2), w, b);
  const at::Tensor summands =
      compute({"summands", "c - a * b"}, {N, group, each}, mean.unsqueeze(2), factors, b);
  const at::Tensor out = scaled(in, HxW, factors, summands).view(input.sizes());
  return {ordered_like(out, input), mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> group_norm_backward(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
    const at::Tensor& rstd, const Optional& weight, std::int64_t N, std::int64_t C,
    std::int64_t HxW, std::int64_t group, std::array<bool, 3> output_mask) {
  if (!takes(input, {&weight}) || mean.scalar_type() != at::kFloat) {
    return Fallback<decltype(group_norm_backward)>::call("aten::native_group_norm_backward", "",
                                                         grad_out, input, mean, rstd, weight, N, C,
                                                         HxW, group, output_mask);
  }
  const std::int64_t each = C / group;
  const at::Tensor in = input.contiguous();
  const at::Tensor grad = grad_out.contiguous();
  const std::array<std::int64_t, 3> all = {N, group, each};
  const at::Tensor m = mean.reshape({N, group, 1});
  const at::Tensor r = rstd.reshape({N, group, 1});
  const at::Tensor w = parameter(weight, {group, each}, 1);
  const at::Tensor means = compute({"means", "a"}, all, m, w, r);
  const auto [row_sum, row_product] = row_sums(grad, in, HxW, means);
  const at::Tensor sums = row_sum.view(all);
  const at::Tensor products = row_product.view(all);

  at::Tensor grad_input;
  if (output_mask[0]) {
    const double share = 1 / static_cast<double>(each * HxW);
    const auto of_groups = [&](const at::Tensor& of) {
      const at::Tensor weighted = compute({"weighted", "a * b"}, all, of, w, r);
      const at::Tensor out = numbers(in, {N, group, 1});
      reduce(kSum, weighted, std::array<std::int64_t, 1>{2}, at::kFloat, out);
      return out;
    };
    const at::Tensor a = compute({"factors", "a * b"}, all, r, w, r);
    const at::Tensor b =
        compute({"of distances", "-x * a * b * b * b"}, all, of_groups(products), r, w, share);
    const at::Tensor c = compute({"summands", "-x * a * b"}, all, of_groups(sums), r, w, share);
    grad_input = scaled(grad, in, HxW, a, b, c, means);
    grad_input = ordered_like(grad_input, input);
  }
  at::Tensor grad_weight;
  if (output_mask[1]) {
    grad_weight =
        first_sums(compute({"scaled", "a * b"}, all, products, r, w).view({N, C}), weight);
  }
  at::Tensor grad_bias;
  if (output_mask[2]) grad_bias = first_sums(sums.view({N, C}), weight);
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace ocl
