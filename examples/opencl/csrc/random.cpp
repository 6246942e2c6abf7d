// Random numbers. PyTorch's templates check the calls, and call these kernels.

#include <limits>
#include <optional>
#include <tuple>

#include <ATen/Context.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <backendkit/generator.h>

#include "elementwise.h"
#include "fallback.h"
#include "kernels.h"
#include "rows.h"
#include "runtime.h"

namespace ocl {

namespace {

namespace templates = at::native::templates;

using Random = backendkit::Generator;
using MaybeGenerator = std::optional<at::Generator>;

/// What a kernel draws: a macro of kernels/random.cl, and its numbers.
struct Draw {
  const char* what;
  double x = 0;
  double y = 0;
  std::int64_t base = 0;
  std::uint64_t range = 0;
};

void draw(const at::Tensor& out, const Draw& how, const MaybeGenerator& generator) {
  // A subsequence of the generator makes four elements, or two integers.
  const backendkit::PhiloxState state = backendkit::philox_state<Runtime>(generator, 4);
  if (out.numel() == 0) return;
  const at::Tensor to =
      out.is_non_overlapping_and_dense() ? out : at::empty(out.sizes(), out.options());
  RowLaunch launch("random", out.device().index(), "random", "draw", 1, {{"OUT", out}}, how.what,
                   std::string("#define ") + how.what + "\n");
  launch.value(out.numel()).value(state.seed).value(state.offset / 4);
  launch.value(static_cast<float>(how.x)).value(static_cast<float>(how.y));
  launch.value(how.base).value(how.range);
  launch.output(to);
  launch.run_for(static_cast<std::size_t>(out.numel()));
  if (!to.is_same(out)) out.copy_(to);
}

template <class>
struct Uniform {
  void operator()(at::TensorIteratorBase& iter, double from, double to, MaybeGenerator generator) {
    draw(iter.tensor(0), {"UNIFORM", from, to}, generator);
  }
};

template <class>
struct Normal {
  void operator()(const at::Tensor& self, double mean, double std, MaybeGenerator generator) {
    draw(self, {"NORMAL", mean, std}, generator);
  }
};

template <class>
struct Bernoulli {
  void operator()(const at::Tensor& self, double p, MaybeGenerator generator) {
    draw(self, {"BERNOULLI", p}, generator);
  }
};

template <class>
struct Integers {
  void operator()(at::TensorIteratorBase& iter, MaybeGenerator generator) {
    draw(iter.tensor(0), {"INTEGERS", 0, 0, 0, range_of(iter.tensor(0).scalar_type())}, generator);
  }

  /// How many numbers `random_` has without limits.
  static std::uint64_t range_of(c10::ScalarType type) {
    constexpr std::uint64_t kOne = 1;
    switch (type) {
      case c10::ScalarType::Float:
        return (kOne << 24) + 1;
      case c10::ScalarType::Half:
        return (kOne << 11) + 1;
      case c10::ScalarType::BFloat16:
        return (kOne << 8) + 1;
      case c10::ScalarType::Int:
        return kOne << 31;
      case c10::ScalarType::Bool:
        return 2;
      default:
        return kOne << 63;
    }
  }
};

template <class>
struct IntegersFrom {
  void operator()(at::TensorIteratorBase& iter, std::uint64_t range, std::int64_t base,
                  MaybeGenerator generator) {
    draw(iter.tensor(0), {"INTEGERS", 0, 0, base, range}, generator);
  }

  /// Every number of 64 bits.
  void operator()(at::TensorIteratorBase& iter, MaybeGenerator generator) {
    draw(iter.tensor(0), {"INTEGERS"}, generator);
  }
};

}  // namespace

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  return templates::uniform_impl_<Uniform, Random>(self, from, to, generator);
}

at::Tensor& normal_(at::Tensor& self, double mean, double std, MaybeGenerator generator) {
  return templates::normal_impl_<Normal, Random>(self, mean, std, generator);
}

at::Tensor& bernoulli_(at::Tensor& self, double p, MaybeGenerator generator) {
  return templates::bernoulli_impl_<Bernoulli, Random>(self, p, generator);
}

at::Tensor& random_(at::Tensor& self, MaybeGenerator generator) {
  return templates::random_impl<Integers, Random>(self, generator);
}

at::Tensor& random_from_(at::Tensor& self, std::int64_t from, std::optional<std::int64_t> to,
                         MaybeGenerator generator) {
  return templates::random_from_to_impl<IntegersFrom, Random>(self, from, to, generator);
}

at::Tensor& random_to_(at::Tensor& self, std::int64_t to, MaybeGenerator generator) {
  return random_from_(self, 0, to, generator);
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p,
                                           std::optional<bool> train) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (train.has_value() && !*train) {
    elementwise({"dropout", "1"}, at::kBool, mask, {});
    return {input, mask};
  }
  bernoulli_(mask, 1 - p, std::nullopt);
  return {dropout_backward(input, mask, p == 1 ? 0 : 1 / (1 - p)), mask};
}

at::Tensor dropout_backward(const at::Tensor& grad_output, const at::Tensor& mask, double scale) {
  at::Tensor out = result_of(grad_output.scalar_type(), {&grad_output, &mask});
  elementwise({"dropout", "a * b * x"}, grad_output.scalar_type(), out, {&grad_output, &mask},
              scale);
  return out;
}

}  // namespace ocl
