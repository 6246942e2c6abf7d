// Optimizers with `fused=True`: one kernel for each parameter. Without it, `foreach=True`, the
// default, is composed by PyTorch of the operators in pointwise.cpp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtypes.h"
#include "kernels.h"
#include "launch.h"

namespace ocl {

namespace {

/// The tensors of a step, for a kernel that reads all in the order of their memory: if they differ
/// in it, copies of which those that are written are copied back.
class Together {
 public:
  /// The first tensor is a parameter, the second its gradient, the others its state.
  Together(std::vector<at::Tensor> tensors, bool writes_gradient)
      : given_(std::move(tensors)), used_(given_), writes_gradient_(writes_gradient) {
    for (const at::Tensor& one : given_) {
      TORCH_CHECK(one.sizes() == given_[0].sizes() && one.scalar_type() == given_[0].scalar_type(),
                  "fused optimizers: parameters, gradients and states have one shape and one "
                  "dtype, but got ",
                  one.sizes(), " of ", one.scalar_type(), " and ", given_[0].sizes(), " of ",
                  given_[0].scalar_type());
      together_ =
          together_ && one.is_non_overlapping_and_dense() && one.strides() == given_[0].strides();
    }
    if (together_) return;
    for (at::Tensor& one : used_) one = one.contiguous();
  }

  const std::vector<at::Tensor>& all() const { return used_; }

  bool writes(std::size_t place) const { return place != 1 || writes_gradient_; }

  void finish() const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (writes(i) && !used_[i].is_same(given_[i])) given_[i].copy_(used_[i]);
    }
  }

 private:
  std::vector<at::Tensor> given_, used_;
  bool writes_gradient_;
  bool together_ = true;
};

/// What Adam, AdamW and SGD have in common.
struct Step {
  double lr = 0;
  at::Tensor lr_tensor;  ///< instead of the number, if it is defined
  std::optional<at::Tensor> grad_scale, found_inf;
  std::vector<const char*> options;  ///< macros

  static bool has(const std::optional<at::Tensor>& one) {
    return one.has_value() && one->defined();
  }
};

/// Runs a kernel for one parameter; `numbers` and `step` are its own arguments.
void run(const char* op, const char* function, const Step& step, const std::vector<float>& numbers,
         const std::optional<int>& first, const at::Tensor& steps,
         const std::vector<at::Tensor>& tensors) {
  const at::Tensor& parameter = tensors[0];
  if (parameter.numel() == 0) return;
  const Together together(tensors, Step::has(step.grad_scale));
  const bool small = parameter.numel() < std::numeric_limits<std::int32_t>::max();
  std::string defines = std::string("#define INDEX ") + (small ? "int" : "long") +
                        "\n#define TYPE " + dtype_of(parameter.scalar_type()).name + "\n";
  std::uint64_t macros = static_cast<unsigned>(dtype_of(parameter.scalar_type()).code);
  const auto define = [&](const char* name, bool wanted) {
    macros = macros << 1 | (wanted ? 1U : 0U);
    if (wanted) defines += std::string("#define ") + name + "\n";
  };
  define("SCALED", Step::has(step.grad_scale));
  define("CHECKED", Step::has(step.found_inf));
  define("LR", step.lr_tensor.defined());
  for (const std::string known : {"AMSGRAD", "DECOUPLED", "NESTEROV", "MOMENTUM"}) {
    define(known.c_str(),
           std::find(step.options.begin(), step.options.end(), known) != step.options.end());
  }
  macros = macros << 1 | (small ? 1U : 0U);
  Launch launch(op, parameter.device().index(), {"optimizers", function, nullptr, macros},
                [&] { return defines; });
  if (small) {
    launch.value(static_cast<std::int32_t>(parameter.numel()));
  } else {
    launch.value(parameter.numel());
  }
  launch.value(static_cast<float>(step.lr));
  for (const float number : numbers) launch.value(number);
  if (first.has_value()) launch.value(*first);
  if (steps.defined()) launch.tensor(steps);
  for (std::size_t i = 0; i < together.all().size(); ++i) {
    const at::Tensor& one = together.all()[i];
    if (together.writes(i)) {
      launch.output(one);
    } else {
      launch.tensor(one);
    }
  }
  // The numbers in memory are on this device, except that a learning rate may be anywhere.
  std::vector<at::Tensor> kept;
  for (const at::Tensor& one : {step.grad_scale.value_or(at::Tensor()),
                                step.found_inf.value_or(at::Tensor()), step.lr_tensor}) {
    if (one.defined()) launch.tensor(kept.emplace_back(one.to(parameter.device(), at::kFloat)));
  }
  launch.run_for(static_cast<std::size_t>(parameter.numel()));
  together.finish();
}

struct Adam {
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;
};

void adam(const char* op, Step step, const Adam& adam, at::TensorList parameters,
          at::TensorList grads, at::TensorList averages, at::TensorList squares,
          at::TensorList greatest, at::TensorList steps) {
  if (adam.amsgrad) step.options.push_back("AMSGRAD");
  const std::vector<float> numbers = {static_cast<float>(adam.weight_decay),
                                      static_cast<float>(adam.eps),
                                      adam.maximize ? -1.F : 1.F,
                                      static_cast<float>(1 - adam.beta1),
                                      static_cast<float>(1 - adam.beta2),
                                      static_cast<float>(std::log(adam.beta1)),
                                      static_cast<float>(std::log(adam.beta2))};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<at::Tensor> tensors = {parameters[i], grads[i], averages[i], squares[i]};
    if (adam.amsgrad) tensors.push_back(greatest[i]);
    run(op, "adam", step, numbers, std::nullopt, steps[i].to(parameters[i].device(), at::kFloat),
        tensors);
  }
}

struct Sgd {
  double weight_decay, momentum, dampening;
  bool nesterov, maximize, is_first_step;
};

void sgd(Step step, const Sgd& sgd, at::TensorList parameters, at::TensorList grads,
         at::TensorList buffers) {
  const bool moves = !buffers.empty();
  if (moves) step.options.push_back("MOMENTUM");
  if (moves && sgd.nesterov) step.options.push_back("NESTEROV");
  const std::vector<float> numbers = {
      static_cast<float>(sgd.weight_decay), static_cast<float>(sgd.momentum),
      static_cast<float>(1 - sgd.dampening), sgd.maximize ? -1.F : 1.F};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<at::Tensor> tensors = {parameters[i], grads[i]};
    if (moves) tensors.push_back(buffers[i]);
    run("fused_sgd_", "sgd", step, numbers, sgd.is_first_step ? 1 : 0, at::Tensor(), tensors);
  }
}

}  // namespace

// Each optimizer takes the learning rate as a number, or as a tensor.
#define OCL_ADAM(name, Rate, ...)                                                                  \
  void name(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs,                    \
            at::TensorList exp_avg_sqs, at::TensorList max_exp_avg_sqs,                            \
            at::TensorList state_steps, Rate lr, double beta1, double beta2, double weight_decay,  \
            double eps, bool amsgrad, bool maximize, const std::optional<at::Tensor>& grad_scale,  \
            const std::optional<at::Tensor>& found_inf) {                                          \
    Step step{.grad_scale = grad_scale, .found_inf = found_inf, .options = {__VA_ARGS__}};         \
    set_rate(step, lr);                                                                            \
    adam(#name, step, {beta1, beta2, weight_decay, eps, amsgrad, maximize}, self, grads, exp_avgs, \
         exp_avg_sqs, max_exp_avg_sqs, state_steps);                                               \
  }

#define OCL_SGD(name, Rate)                                                                        \
  void name(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list,        \
            double weight_decay, double momentum, Rate lr, double dampening, bool nesterov,        \
            bool maximize, bool is_first_step, const std::optional<at::Tensor>& grad_scale,        \
            const std::optional<at::Tensor>& found_inf) {                                          \
    Step step{.grad_scale = grad_scale, .found_inf = found_inf};                                   \
    set_rate(step, lr);                                                                            \
    sgd(step, {weight_decay, momentum, dampening, nesterov, maximize, is_first_step}, self, grads, \
        momentum_buffer_list);                                                                     \
  }

namespace {

void set_rate(Step& step, double lr) { step.lr = lr; }
void set_rate(Step& step, const at::Tensor& lr) { step.lr_tensor = lr; }

}  // namespace

OCL_ADAM(fused_adam_, double)
OCL_ADAM(fused_adam_, const at::Tensor&)
OCL_ADAM(fused_adamw_, double, "DECOUPLED")
OCL_ADAM(fused_adamw_, const at::Tensor&, "DECOUPLED")
OCL_SGD(fused_sgd_, double)
OCL_SGD(fused_sgd_, const at::Tensor&)
#undef OCL_ADAM
#undef OCL_SGD

}  // namespace ocl
