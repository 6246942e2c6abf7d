// Operators that make one element of many: a table of reducers, and the places of extremes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/empty.h>

#include "dtypes.h"
#include "fallback.h"
#include "kernels.h"
#include "reduce.h"
#include "rows.h"

namespace ocl {

namespace {

constexpr const char* kGreater = "(a > t) | (a != a)";
constexpr const char* kLess = "(a < t) | (a != a)";

constexpr Reducer kProd{"prod", "1", "t * a", "t * a"};
constexpr Reducer kMax{"amax", "LOWEST", "(a > t) | (a != a) ? a : t",
                       "(a > t) | (a != a) ? a : t"};
constexpr Reducer kMin{"amin", "HIGHEST", "(a < t) | (a != a) ? a : t",
                       "(a < t) | (a != a) ? a : t"};
constexpr Reducer kAny{"any", "0", "a != 0 ? a : t", "a != 0 ? a : t"};
constexpr Reducer kAll{"all", "1", "t == 0 ? t : a", "t == 0 ? t : a"};
constexpr Reducer kStd{"std", "0", "t + (a - m) * (a - m)", "t + a", "sqrt(t / x)"};
constexpr Reducer kNorm{"vector_norm", "0", "t + a * a", "t + a", "sqrt(t)"};
constexpr Reducer kSumOfSizes{"vector_norm_1", "0", "t + fabs(a)", "t + a"};
constexpr Reducer kGreatestSize{"vector_norm_inf", "0", "(fabs(a) > t) | (a != a) ? fabs(a) : t",
                                "(a > t) | (a != a) ? a : t"};
constexpr Reducer kPowers{"vector_norm_p", "0", "t + pow(fabs(a), (Wide)x)", "t + a",
                          "pow(t, 1 / x)"};

// An extreme is looked for in parts of so many elements at least, and less than 2^31.
constexpr std::int64_t kPart = 1 << 14;
constexpr std::int64_t kLongestPart = 1 << 30;

/// The dtype in which elements are compared.
c10::ScalarType compared(c10::ScalarType type) {
  return is_floating(type) ? c10::ScalarType::Float : type;
}

/// How many elements become one.
double per_result(const at::Tensor& self, const at::Tensor& out) {
  return static_cast<double>(self.numel()) /
         static_cast<double>(std::max<std::int64_t>(out.numel(), 1));
}

/// The sum, or the product, of elements in the dtype of `out`: of bools, whether any or all are
/// true.
void accumulate(const Reducer& reducer, const Reducer& of_bools, const at::Tensor& self,
                at::OptionalIntArrayRef dims, const at::Tensor& out) {
  const auto type = out.scalar_type();
  if (type == at::kBool) return reduce(of_bools, self, dims, compared(self.scalar_type()), out);
  reduce(reducer, self, dims, sum_dtype(type), out);
}

/// The mean, and the variance with a divisor or its root.
std::tuple<at::Tensor, at::Tensor> variance(const Reducer& reducer, const at::Tensor& self,
                                            at::OptionalIntArrayRef dim,
                                            const std::optional<at::Scalar>& correction,
                                            bool keepdim) {
  const bool some = dim.has_value() && !dim->empty();
  const auto reduced = at::dim_list_to_bitset(some ? dim : std::nullopt, self.dim());
  c10::DimVector sizes;
  for (std::int64_t place = 0; place < self.dim(); ++place) {
    if (!reduced[static_cast<std::size_t>(place)]) {
      sizes.push_back(self.size(place));
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  const at::Tensor mean = at::empty(sizes, self.options().dtype(at::kFloat));
  at::Tensor out = at::empty(sizes, self.options());
  const double count = per_result(self, out);
  reduce(kMean, self, dim, at::kFloat, mean, count);
  const double divisor = std::max(count - correction.value_or(1).toDouble(), 0.0);
  reduce(reducer, self, dim, at::kFloat, out, divisor, mean);
  return {out, mean};
}

/// Whether a kernel computes the variance. The CPU's function raises PyTorch's errors, and warns.
bool takes(const at::Tensor& self, at::OptionalIntArrayRef dim,
           const std::optional<at::Scalar>& correction) {
  if (!is_floating(self.scalar_type()) || self.numel() == 0) return false;
  std::int64_t count = dim.has_value() && !dim->empty() ? 1 : self.numel();
  if (dim.has_value()) {
    for (const std::int64_t one : *dim) count *= self.dim() == 0 ? 1 : self.size(one);
  }
  return correction.value_or(1).toDouble() < static_cast<double>(count);
}

using Variance = at::Tensor(const at::Tensor&, at::OptionalIntArrayRef,
                            const std::optional<at::Scalar>&, bool);
using VarianceAndMean = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&,
                                                           at::OptionalIntArrayRef,
                                                           const std::optional<at::Scalar>&, bool);

/// Launches kernels/arg.cl for rows of `n` neighbours, in parts: what is best of each, and where.
void launch_arg(const char* op, const char* better, const at::Tensor& in, const at::Tensor& known,
                std::int64_t n, std::int64_t parts, const at::Tensor& values,
                const at::Tensor& places) {
  std::string texts = std::string("#define BETTER ") + better + "\n#define START " +
                      (better == kGreater ? "LOWEST" : "HIGHEST") + "\n";
  if (values.defined()) texts += "#define VALUES\n";
  if (known.defined()) texts += "#define PLACES\n";
  const std::int64_t count = in.numel() / n;
  RowLaunch launch(op, in.device().index(), "arg", "arg", n / parts,
                   {{"NUMBER", compared(in.scalar_type())}, {"A", in}}, better, texts,
                   (values.defined() ? 1U : 0U) | (known.defined() ? 2U : 0U));
  launch.value(count).value(n).value(parts);
  launch.output(values).output(places).tensor(in).tensor(known);
  launch.run(count * parts);
}

/// Writes the extreme of each row along `dim`, or of all elements, and its place.
void arg(const char* op, const char* better, const at::Tensor& self,
         std::optional<std::int64_t> dim, const at::Tensor& values, const at::Tensor& places) {
  if (values.defined()) {
    at::assert_no_overlap(values, self);
    at::assert_no_overlap(places, self);
  }
  if (places.numel() == 0) return;
  const bool rows = dim.has_value() && self.dim() > 0;
  const at::Tensor in = rows ? self.movedim(*dim, -1).contiguous() : self.contiguous();
  const std::int64_t n = rows ? self.size(*dim) : self.numel();
  const std::int64_t count = places.numel();
  const Device& device = device_at(self.device().index());
  const auto wanted = static_cast<std::int64_t>((device.is_cpu ? 2 : 16) * device.units);
  const std::int64_t parts =
      std::max(std::clamp<std::int64_t>(wanted / count, 1, std::max<std::int64_t>(n / kPart, 1)),
               n / kLongestPart + 1);
  const auto direct = [](const at::Tensor& to) {
    return !to.defined() || to.is_contiguous() ? to : at::empty(to.sizes(), to.options());
  };
  const at::Tensor to_values = direct(values);
  const at::Tensor to_places = direct(places);
  if (parts == 1) {
    launch_arg(op, better, in, {}, n, 1, to_values, to_places);
  } else {
    const at::Tensor best = at::empty({count, parts}, self.options());
    const at::Tensor where = at::empty({count, parts}, places.options());
    launch_arg(op, better, in, {}, n, parts, best, where);
    launch_arg(op, better, best, where, parts, 1, to_values, to_places);
  }
  if (!to_values.is_same(values)) values.copy_(to_values);
  if (!to_places.is_same(places)) places.copy_(to_places);
}

}  // namespace

void sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool, std::optional<at::ScalarType>,
         const at::Tensor& out) {
  accumulate(kSum, kAny, self, dim, out);
}

void mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool, std::optional<at::ScalarType>,
          const at::Tensor& out) {
  TORCH_CHECK(is_floating(out.scalar_type()), "result type ", self.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::assert_no_internal_overlap(out);
  reduce(kMean, self, dim, at::kFloat, out, per_result(self, out));
}

at::Tensor prod(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  const auto type = self.scalar_type();
  const auto result = dtype.value_or(is_floating(type) ? type : at::kLong);
  if (!is_known(result)) {
    return Fallback<at::Tensor(const at::Tensor&, std::optional<at::ScalarType>)>::call(
        "aten::prod", "", self, dtype);
  }
  at::Tensor out = at::empty({}, self.options().dtype(result));
  accumulate(kProd, kAll, self, std::nullopt, out);
  return out;
}

void prod_dim(const at::Tensor& self, std::int64_t dim, bool, std::optional<at::ScalarType>,
              const at::Tensor& out) {
  accumulate(kProd, kAll, self, at::IntArrayRef(dim), out);
}

void amax(const at::Tensor& self, at::IntArrayRef dim, bool, const at::Tensor& out) {
  reduce(kMax, self, dim, compared(self.scalar_type()), out);
}

void amin(const at::Tensor& self, at::IntArrayRef dim, bool, const at::Tensor& out) {
  reduce(kMin, self, dim, compared(self.scalar_type()), out);
}

at::Tensor max(const at::Tensor& self) {
  if (self.numel() == 0)
    return Fallback<at::Tensor(const at::Tensor&)>::call("aten::max", "", self);
  at::Tensor out = at::empty({}, self.options());
  reduce(kMax, self, std::nullopt, compared(self.scalar_type()), out);
  return out;
}

at::Tensor min(const at::Tensor& self) {
  if (self.numel() == 0)
    return Fallback<at::Tensor(const at::Tensor&)>::call("aten::min", "", self);
  at::Tensor out = at::empty({}, self.options());
  reduce(kMin, self, std::nullopt, compared(self.scalar_type()), out);
  return out;
}

void any(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& out) {
  reduce(kAny, self, at::IntArrayRef(dim), compared(self.scalar_type()), out);
}

void any_of_all(const at::Tensor& self, const at::Tensor& out) {
  reduce(kAny, self, std::nullopt, compared(self.scalar_type()), out);
}

void all(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& out) {
  reduce(kAll, self, at::IntArrayRef(dim), compared(self.scalar_type()), out);
}

void all_of_all(const at::Tensor& self, const at::Tensor& out) {
  reduce(kAll, self, std::nullopt, compared(self.scalar_type()), out);
}

void vector_norm(const at::Tensor& self, const at::Scalar& ord, at::OptionalIntArrayRef dim,
                 bool keepdim, std::optional<at::ScalarType> dtype, const at::Tensor& out) {
  const double power = ord.toDouble();
  if (power == 2) return reduce(kNorm, self, dim, at::kFloat, out);
  if (power == 1) return reduce(kSumOfSizes, self, dim, at::kFloat, out);
  if (power == INFINITY) return reduce(kGreatestSize, self, dim, at::kFloat, out);
  if (power > 0) return reduce(kPowers, self, dim, at::kFloat, out, power);
  at::Tensor to = out;
  Fallback<at::Tensor&(const at::Tensor&, const at::Scalar&, at::OptionalIntArrayRef, bool,
                       std::optional<at::ScalarType>,
                       at::Tensor&)>::call("aten::linalg_vector_norm", "out", self, ord, dim,
                                           keepdim, dtype, to);
}

at::Tensor var(const at::Tensor& self, at::OptionalIntArrayRef dim,
               const std::optional<at::Scalar>& correction, bool keepdim) {
  if (takes(self, dim, correction)) {
    return std::get<0>(variance(kVariance, self, dim, correction, keepdim));
  }
  return Fallback<Variance>::call("aten::var", "correction", self, dim, correction, keepdim);
}

at::Tensor std_correction(const at::Tensor& self, at::OptionalIntArrayRef dim,
                          const std::optional<at::Scalar>& correction, bool keepdim) {
  if (takes(self, dim, correction)) {
    return std::get<0>(variance(kStd, self, dim, correction, keepdim));
  }
  return Fallback<Variance>::call("aten::std", "correction", self, dim, correction, keepdim);
}

std::tuple<at::Tensor, at::Tensor> var_mean(const at::Tensor& self, at::OptionalIntArrayRef dim,
                                            const std::optional<at::Scalar>& correction,
                                            bool keepdim) {
  if (takes(self, dim, correction)) {
    const auto [result, mean] = variance(kVariance, self, dim, correction, keepdim);
    return {result, mean.to(self.scalar_type())};
  }
  return Fallback<VarianceAndMean>::call("aten::var_mean", "correction", self, dim, correction,
                                         keepdim);
}

std::tuple<at::Tensor, at::Tensor> std_mean(const at::Tensor& self, at::OptionalIntArrayRef dim,
                                            const std::optional<at::Scalar>& correction,
                                            bool keepdim) {
  if (takes(self, dim, correction)) {
    const auto [result, mean] = variance(kStd, self, dim, correction, keepdim);
    return {result, mean.to(self.scalar_type())};
  }
  return Fallback<VarianceAndMean>::call("aten::std_mean", "correction", self, dim, correction,
                                         keepdim);
}

void argmax(const at::Tensor& self, std::optional<std::int64_t> dim, bool, const at::Tensor& out) {
  if (dim.has_value()) dim = at::maybe_wrap_dim(*dim, self.dim());
  arg("argmax", kGreater, self, dim, {}, out);
}

void argmin(const at::Tensor& self, std::optional<std::int64_t> dim, bool, const at::Tensor& out) {
  if (dim.has_value()) dim = at::maybe_wrap_dim(*dim, self.dim());
  arg("argmin", kLess, self, dim, {}, out);
}

void max_dim(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& values,
             const at::Tensor& places) {
  arg("max", kGreater, self, dim, values, places);
}

void min_dim(const at::Tensor& self, std::int64_t dim, bool, const at::Tensor& values,
             const at::Tensor& places) {
  arg("min", kLess, self, dim, values, places);
}

}  // namespace ocl
