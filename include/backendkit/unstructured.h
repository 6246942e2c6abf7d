// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

// Without this, ATen/native/Resize.h includes all operators of PyTorch.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include <backendkit/dense.h>
#include <backendkit/kernel.h>

namespace backendkit {

namespace kernel_detail {

/// A contiguous stand-in for a tensor that a kernel writes to, copied back by `finish`.
class Written {
 public:
  explicit Written(at::Tensor& tensor) : original_(&tensor) {
    if (tensor.defined() && !DenseTensors::is_plain(tensor)) {
      stand_in_ = tensor.resolve_conj().resolve_neg().contiguous();
      if (stand_in_.is_same(tensor)) stand_in_ = tensor.clone(at::MemoryFormat::Contiguous);
    }
  }

  at::Tensor& get() { return stand_in_.defined() ? stand_in_ : *original_; }
  at::Tensor& original() { return *original_; }

  void finish() {
    if (!stand_in_.defined()) return;
    if (stand_in_.sizes() != original_->sizes()) original_->resize_(stand_in_.sizes());
    // Only one of the elements that an expanded tensor repeats is written.
    at::Tensor from = stand_in_, to = *original_;
    for (std::int64_t dim = 0; dim < to.dim(); ++dim) {
      if (to.stride(dim) != 0 || to.size(dim) < 2) continue;
      from = from.narrow(dim, 0, 1);
      to = to.narrow(dim, 0, 1);
    }
    to.copy_(from);
  }

 private:
  at::Tensor* original_;
  at::Tensor stand_in_;
};

/// What a dense kernel receives for an argument of the operator: one of type `Argument`, at
/// `position`.
template <class Argument>
struct DenseArgument {
  DenseArgument(DenseTensors& tensors, const std::remove_reference_t<Argument>& argument)
      : dense_(tensors.contiguous(argument)) {}
  const auto& get() { return dense_; }
  void finish() {}

 private:
  decltype(std::declval<DenseTensors&>().contiguous(
      std::declval<const std::remove_reference_t<Argument>&>())) dense_;
};

template <>
struct DenseArgument<at::Tensor&> : Written {
  DenseArgument(DenseTensors&, at::Tensor& tensor) : Written(tensor) {}
};

/// The references that an operator returns: those to its written arguments, in order.
inline auto original_of(DenseArgument<at::Tensor&>& written) {
  return std::tie(written.original());
}

template <class Argument>
std::tuple<> original_of(DenseArgument<Argument>&) {
  return {};
}

/// Calls a kernel with contiguous tensors.
template <class Result, class... Arguments>
Result call_dense(Result (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
  DenseTensors tensors;
  std::tuple<DenseArgument<Arguments>...> dense(DenseArgument<Arguments>(tensors, arguments)...);
  return std::apply(
      [&](auto&... one) -> Result {
        if constexpr (std::is_void_v<Result>) {
          function(one.get()...);
          (one.finish(), ...);
        } else if constexpr (std::is_same_v<Result, at::Tensor&>) {
          function(one.get()...);
          (one.finish(), ...);
          return std::get<0>(std::tuple_cat(original_of(one)...));
        } else if constexpr (std::is_same_v<Result,
                                            decltype(std::tuple_cat(original_of(one)...))>) {
          function(one.get()...);
          (one.finish(), ...);
          return std::tuple_cat(original_of(one)...);
        } else {
          Result result = function(one.get()...);
          (one.finish(), ...);
          return result;
        }
      },
      dense);
}

/// Calls the vendor's function with inputs in the form that the description asks for.
template <class Traits, class Result, class... Arguments>
Result call_kernel(Result (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
  if constexpr (Traits::kInputs == Inputs::kDense) {
    return call_dense(function, std::forward<Arguments>(arguments)...);
  } else {
    return function(std::forward<Arguments>(arguments)...);
  }
}

/// Writes a result to the tensor of an out= argument, by PyTorch's rules for out=.
inline void write_out(const at::Tensor& result, at::Tensor& out) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ",
              out.scalar_type());
  at::assert_no_internal_overlap(out);  // before it is resized, which could end the overlap
  at::native::resize_output(out, result.sizes());
  out.copy_(result);
}

/// Writes a result to the tensor that an operator works on in place.
inline void write_in_place(const at::Tensor& result, at::Tensor& self) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), self.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ",
              self.scalar_type());
  TORCH_CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", result.sizes());
  self.copy_(result);
}

}  // namespace kernel_detail

/// The kernel of an operator that is directly the vendor's function. `Signature` is the type that
/// PyTorch requires; it selects one of several overloads, and a function of another type does not
/// compile.
template <Name op, class Traits, class Order, class Signature, Signature* function>
struct Unstructured;

template <Name op, class Traits, class Order, class Result, class... Arguments,
          Result (*function)(Arguments...)>
struct Unstructured<op, Traits, Order, Result(Arguments...), function> {
  static Result call(Arguments... arguments) {
    return kernel_detail::Entry<op, Traits, Order, Result(Arguments...)>::call(
        [](Arguments... passed) -> Result {
          return kernel_detail::call_kernel<Traits>(function, std::forward<Arguments>(passed)...);
        },
        std::forward<Arguments>(arguments)...);
  }
};

/// The out= variant of an operator for which the vendor has the functional variant: the result is
/// written to `out`, which is resized to fit.
template <Name op, class Traits, class Order, class Signature, auto function>
struct OutOfFunctional;

template <Name op, class Traits, class Order, class Result, class... Arguments, class... Inputs,
          class Value, Value (*function)(Inputs...)>
struct OutOfFunctional<op, Traits, Order, Result(Arguments...), function> {
  static Result call(Arguments... arguments) {
    return kernel_detail::Entry<op, Traits, Order, Result(Arguments...)>::call(
        [](Arguments... passed) -> Result {
          const auto all = std::forward_as_tuple(passed...);
          return write(all, std::make_index_sequence<sizeof...(Inputs)>(),
                       std::make_index_sequence<sizeof...(Arguments) - sizeof...(Inputs)>());
        },
        std::forward<Arguments>(arguments)...);
  }

 private:
  template <class All, std::size_t... in, std::size_t... out>
  static Result write(const All& all, std::index_sequence<in...>, std::index_sequence<out...>) {
    const Value value = kernel_detail::call_kernel<Traits>(function, Inputs(std::get<in>(all))...);
    if constexpr (sizeof...(out) == 1) {
      at::Tensor& target = std::get<sizeof...(Inputs)>(all);
      kernel_detail::write_out(value, target);
      return target;
    } else {
      (kernel_detail::write_out(std::get<out>(value), std::get<sizeof...(Inputs) + out>(all)), ...);
      return Result(std::get<sizeof...(Inputs) + out>(all)...);
    }
  }
};

/// The in-place variant of an operator for which the vendor has the functional variant.
template <Name op, class Traits, class Order, class Signature, auto function>
struct InPlaceOfFunctional;

template <Name op, class Traits, class Order, class... Rest, class... Inputs,
          at::Tensor (*function)(Inputs...)>
struct InPlaceOfFunctional<op, Traits, Order, at::Tensor&(at::Tensor&, Rest...), function> {
  static at::Tensor& call(at::Tensor& self, Rest... rest) {
    return kernel_detail::Entry<op, Traits, Order, at::Tensor&(at::Tensor&, Rest...)>::call(
        [](at::Tensor& tensor, Rest... passed) -> at::Tensor& {
          kernel_detail::write_in_place(
              kernel_detail::call_kernel<Traits>(function, tensor, std::forward<Rest>(passed)...),
              tensor);
          return tensor;
        },
        self, std::forward<Rest>(rest)...);
  }
};

/// The in-place variant of an operator for which the vendor has the out= variant. The kernel writes
/// to a separate tensor, because it may not expect its input to change while it reads.
template <Name op, class Traits, class Order, class Signature, auto function>
struct InPlaceOfOut;

template <Name op, class Traits, class Order, class... Rest, class... All,
          at::Tensor& (*function)(All...)>
struct InPlaceOfOut<op, Traits, Order, at::Tensor&(at::Tensor&, Rest...), function> {
  static at::Tensor& call(at::Tensor& self, Rest... rest) {
    return kernel_detail::Entry<op, Traits, Order, at::Tensor&(at::Tensor&, Rest...)>::call(
        [](at::Tensor& tensor, Rest... passed) -> at::Tensor& {
          at::Tensor result = at::empty({0}, tensor.options());
          kernel_detail::call_kernel<Traits>(function, tensor, std::forward<Rest>(passed)...,
                                             result);
          kernel_detail::write_in_place(result, tensor);
          return tensor;
        },
        self, std::forward<Rest>(rest)...);
  }
};

}  // namespace backendkit
