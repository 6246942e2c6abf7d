// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include <backendkit/dense.h>
#include <backendkit/kernel.h>
#include <backendkit/kernel/structured_outputs.h>

namespace backendkit {

/// One call of a structured operator: PyTorch's meta function, then the vendor's kernel. Generated
/// code calls `meta`, `ready`, and the kernel with `in` and `out`.
template <Variant variant, class Traits>
class StructuredCall
    : public kernel_detail::WithOutputs<typename Traits::Meta,
                                        kernel_detail::Outputs<variant, Traits::kOutputs>> {
 public:
  using Meta = typename Traits::Meta;
  using Base = kernel_detail::WithOutputs<Meta, kernel_detail::Outputs<variant, Traits::kOutputs>>;
  using Base::Base;

  static constexpr bool kIterator = std::is_base_of_v<at::TensorIteratorBase, Meta>;
  static constexpr bool kElementwise = Traits::kElementwise;
  static constexpr bool kDense = Traits::kInputs == Inputs::kDense;

  /// Whether to call the kernel, that is, whether it supports the dtypes that the meta function has
  /// computed. `inputs` are the operator's arguments.
  template <class... Arguments>
  bool ready(const Arguments&... inputs) {
    if constexpr (!Traits::kDtypes.has_all()) {
      for (std::size_t i = 0; i < Traits::kOutputs; ++i) judge(this->outputs_.get(i).scalar_type());
      if constexpr (kIterator) {
        if (this->common_dtype_ != at::ScalarType::Undefined) judge(this->common_dtype_);
      }
      if (refused_ != at::ScalarType::Undefined) return false;
    }
    if constexpr (kDense) prepare_outputs(inputs...);
    return true;
  }

  /// The dtype that the kernel does not support; Undefined if `ready` returned true.
  at::ScalarType refused() const { return refused_; }

  /// An argument as the kernel receives it.
  template <class Argument>
  decltype(auto) in(const Argument& argument) {
    if constexpr (!kDense) {
      return argument;
    } else if constexpr (std::is_same_v<Argument, at::Tensor>) {
      return dense_input(argument);
    } else if constexpr (std::is_same_v<Argument, at::OptionalTensorRef>) {
      return argument.has_value() ? at::OptionalTensorRef(dense_input(*argument)) : argument;
    } else {
      return tensors_.contiguous(argument);
    }
  }

  /// The tensor to which the kernel writes result number `i`.
  const at::Tensor& out(std::size_t i) const {
    if constexpr (kDense) {
      if (buffers_[i].defined()) return buffers_[i];
    }
    return this->outputs_.get(i);
  }

  /// Copies results from buffers to the output tensors and returns those.
  template <class Result>
  Result finish() {
    if constexpr (kDense) {
      for (std::size_t i = 0; i < Traits::kOutputs; ++i) {
        if (buffers_[i].defined()) this->outputs_.get(i).copy_(buffers_[i]);
      }
    }
    this->outputs_.finish();
    return this->outputs_.template take<Result>();
  }

 private:
  void judge(at::ScalarType dtype) {
    if (!Traits::kDtypes.has(dtype)) refused_ = dtype;
  }

  /// Elementwise operators compute in the common dtype of their inputs; operators with an argument
  /// `dtype` compute in that of the result.
  at::ScalarType compute_dtype(at::ScalarType otherwise) const {
    if constexpr (kElementwise) {
      if (this->common_dtype_ != at::ScalarType::Undefined) return this->common_dtype_;
    } else if constexpr (Traits::kHasDtype) {
      return this->outputs_.get(0).scalar_type();
    }
    return otherwise;
  }

  const at::Tensor& dense_input(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const at::ScalarType dtype = compute_dtype(tensor.scalar_type());
    if constexpr (kElementwise) {
      const at::Tensor& result = this->outputs_.get(0);
      const bool same = tensor.sizes() == result.sizes();
      if (same && tensor.scalar_type() == dtype && DenseTensors::is_plain(tensor) &&
          tensor.device() == result.device()) {
        return tensor;
      }
      at::Tensor moved = tensor.to(result.device(), dtype);
      if (!same && at::is_expandable_to(tensor.sizes(), result.sizes())) {
        moved = moved.expand(result.sizes());
      }
      return tensors_.hold(moved.resolve_conj().resolve_neg().contiguous());
    } else {
      if (tensor.scalar_type() == dtype) return tensors_.contiguous(tensor);
      return tensors_.contiguous(tensors_.hold(tensor.to(dtype)));
    }
  }

  /// Creates a buffer for each result that the kernel cannot write directly: its strides are not
  /// contiguous, the kernel computes in another dtype, or the result overlaps an input of a kernel
  /// that is not elementwise.
  template <class... Arguments>
  void prepare_outputs(const Arguments&... inputs) {
    std::array<at::ScalarType, Traits::kOutputs> dtypes;
    for (std::size_t i = 0; i < Traits::kOutputs; ++i) {
      dtypes[i] = this->outputs_.get(i).scalar_type();
    }
    if constexpr (kElementwise && variant != Variant::kFunctional) {
      kernel_detail::WithOutputs<Meta, kernel_detail::NoOutputs<Traits::kOutputs>> probe;
      probe_dtypes(probe, dtypes, inputs...);
    }
    for (std::size_t i = 0; i < Traits::kOutputs; ++i) {
      const at::Tensor& result = this->outputs_.get(i);
      bool direct = result.scalar_type() == dtypes[i] && DenseTensors::is_plain(result);
      if constexpr (!kElementwise && variant != Variant::kFunctional) {
        const auto overlaps = [&](const at::Tensor& tensor) {
          return tensor.storage().is_alias_of(result.storage());
        };
        direct = direct && !(kernel_detail::any_tensor(inputs, overlaps) || ...);
      }
      if (!direct) {
        buffers_[i] =
            kernel_detail::new_output(result.sizes(), {}, result.options().dtype(dtypes[i]));
      }
    }
  }

  template <class Probe, class... Arguments>
  static void probe_dtypes(Probe& probe, std::array<at::ScalarType, Traits::kOutputs>& dtypes,
                           const Arguments&... inputs) {
    probe.meta(inputs...);
    for (std::size_t i = 0; i < Traits::kOutputs; ++i) {
      dtypes[i] = probe.maybe_get_output(static_cast<std::int64_t>(i)).scalar_type();
    }
  }

  at::ScalarType refused_ = at::ScalarType::Undefined;
  DenseTensors tensors_;
  std::array<at::Tensor, Traits::kOutputs> buffers_;
};

namespace kernel_detail {

/// Converts the dispatcher's arguments to the types that structured kernels take.
template <class Value>
const Value& structured_argument(const Value& value) {
  return value;
}

inline at::OptionalTensorRef structured_argument(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? at::OptionalTensorRef(*tensor)
                                                 : at::OptionalTensorRef();
}

inline at::OptionalScalarRef structured_argument(const std::optional<at::Scalar>& scalar) {
  return scalar.has_value() ? at::OptionalScalarRef(*scalar) : at::OptionalScalarRef();
}

// The result refers to `list`, which outlives the call.
inline at::IOptTensorListRef structured_argument(const c10::List<std::optional<at::Tensor>>& list) {
  return at::IOptTensorListRef(list);
}

}  // namespace kernel_detail

/// A variant of a structured operator; `Traits::run(call, arguments...)` runs the meta function and
/// the kernel.
template <Name op, Variant variant, class Traits, class Order, class Signature>
struct Structured;

template <Name op, Variant variant, class Traits, class Order, class Result, class... Arguments>
struct Structured<op, variant, Traits, Order, Result(Arguments...)> {
  static Result call(Arguments... arguments) {
    return Entry::call([](Arguments... passed) -> Result { return run(passed...); },
                       std::forward<Arguments>(arguments)...);
  }

 private:
  using Entry = kernel_detail::Entry<op, Traits, Order, Result(Arguments...)>;

  static Result run(Arguments&... arguments) {
    constexpr std::size_t kInputs =
        sizeof...(Arguments) - (variant == Variant::kOut ? Traits::kOutputs : 0);
    const auto all = std::tie(arguments...);
    return with(all, std::make_index_sequence<kInputs>(),
                std::make_index_sequence<sizeof...(Arguments) - kInputs>());
  }

  template <class All, std::size_t... in, std::size_t... out>
  static Result with(const All& all, std::index_sequence<in...>, std::index_sequence<out...>) {
    auto call = [&] {
      if constexpr (variant == Variant::kFunctional) {
        return StructuredCall<variant, Traits>();
      } else if constexpr (variant == Variant::kInPlace) {
        return StructuredCall<variant, Traits>(std::get<0>(all));
      } else {
        return StructuredCall<variant, Traits>(std::get<sizeof...(in) + out>(all)...);
      }
    }();
    Traits::run(call, kernel_detail::structured_argument(std::get<in>(all))...);
    if constexpr (!Traits::kDtypes.has_all()) {
      if (call.refused() != at::ScalarType::Undefined) {
        return std::apply(
            [&](auto&... one) -> Result { return Entry::refuse(call.refused(), one...); }, all);
      }
    }
    return call.template finish<Result>();
  }
};

}  // namespace backendkit
