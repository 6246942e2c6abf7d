// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <type_traits>
#include <utility>

// Else ATen/native/Resize.h includes all operators of PyTorch.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>

#include <backendkit/dense.h>
#include <backendkit/kernel.h>

namespace backendkit {

/// The variants of a structured operator: `add`, `add_`, `add.out`.
enum class Variant { kFunctional, kInPlace, kOut };

namespace kernel_detail {

/// A new tensor on the device that `options` name, which is the current one.
inline at::Tensor new_output(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                             const at::TensorOptions& options) {
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  c10::Allocator* allocator = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  const at::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  if (strides.empty()) {
    return at::Tensor(
        at::detail::empty_generic(sizes, allocator, keys, dtype, options.memory_format_opt()));
  }
  return at::Tensor(at::detail::empty_strided_generic(sizes, strides, allocator, keys, dtype));
}

/// The outputs of a structured operator: tensors of its own, or those of the caller, for some of
/// which a stand-in with other strides is written and copied.
template <Variant variant, std::size_t count>
class Outputs;

template <std::size_t count>
class Outputs<Variant::kFunctional, count> {
 public:
  const at::Tensor& get(std::size_t i) const { return tensors_[i]; }

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool) {
    tensors_[i] = new_output(sizes, strides, options);
  }

  void finish() {}

  template <class Result>
  Result take() {
    if constexpr (count == 1) {
      return std::move(tensors_[0]);
    } else {
      return std::apply([](auto&... all) { return Result(std::move(all)...); }, tensors_);
    }
  }

 private:
  std::array<at::Tensor, count> tensors_;
};

template <std::size_t count>
class GivenOutputs {
 public:
  template <class... Tensors>
  explicit GivenOutputs(Tensors&... tensors) : tensors_{std::ref(tensors)...} {}

  const at::Tensor& get(std::size_t i) const {
    return stand_ins_[i].defined() ? stand_ins_[i] : tensors_[i].get();
  }

  void finish() {
    for (std::size_t i = 0; i < count; ++i) {
      if (stand_ins_[i].defined()) tensors_[i].get().copy_(stand_ins_[i]);
    }
  }

  template <class Result>
  Result take() {
    if constexpr (count == 1) {
      return tensors_[0].get();
    } else {
      return std::apply([](auto&... all) { return Result(all.get()...); }, tensors_);
    }
  }

 protected:
  at::Tensor& given(std::size_t i) { return tensors_[i].get(); }

  /// PyTorch's meta functions ask for exact strides where their kernels need them.
  void match_strides(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                     const at::TensorOptions& options, bool exact) {
    if (exact && given(i).strides() != strides) stand_ins_[i] = new_output(sizes, strides, options);
  }

 private:
  std::array<std::reference_wrapper<at::Tensor>, count> tensors_;
  std::array<at::Tensor, count> stand_ins_;
};

template <std::size_t count>
class Outputs<Variant::kInPlace, count> : public GivenOutputs<count> {
 public:
  using GivenOutputs<count>::GivenOutputs;

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool exact) {
    const at::Tensor& self = this->given(i);
    TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ",
                self.dtype(), " and output tensor dtype ", options.dtype(), " should match");
    TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ",
                self.device(), " and output tensor device ", options.device(), " should match");
    TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(),
                " and output tensor size ", sizes, " should match");
    this->match_strides(i, sizes, strides, options, exact);
  }
};

template <std::size_t count>
class Outputs<Variant::kOut, count> : public GivenOutputs<count> {
 public:
  using GivenOutputs<count>::GivenOutputs;

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool exact) {
    at::Tensor& out = this->given(i);
    TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ",
                options.dtype(), ", but got ", out.dtype(), " instead");
    TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ",
                options.device(), ", but got ", out.device(), " instead");
    // Strides are those of the caller unless the tensor was of another size.
    if (at::native::resize_output(out, sizes)) {
      if (!strides.empty()) {
        out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
      } else if (const auto format = options.memory_format_opt()) {
        out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
      }
    }
    this->match_strides(i, sizes, strides, options, exact);
  }
};

/// A meta class of PyTorch whose outputs are ours. The second parameter is the type of the function
/// that meta classes call, which has one parameter more in older releases.
template <class Meta, class Holder, class Hook = decltype(&at::impl::MetaBase::set_output_strided)>
class WithOutputs;

template <class Meta, class Holder, class... Names>
class WithOutputs<Meta, Holder,
                  void (at::impl::MetaBase::*)(std::int64_t, c10::IntArrayRef, c10::IntArrayRef,
                                               at::TensorOptions, Names...)> : public Meta {
 public:
  template <class... Tensors>
  explicit WithOutputs(Tensors&... tensors) : outputs_(tensors...) {}

  const at::Tensor& maybe_get_output(std::int64_t i) override {
    return outputs_.get(static_cast<std::size_t>(i));
  }

  void set_output_strided(std::int64_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          at::TensorOptions options, Names... names) override {
    set(i, sizes, strides, options, true, names...);
  }

  void set_output_raw_strided(std::int64_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              at::TensorOptions options, Names... names) override {
    set(i, sizes, strides, options, false, names...);
  }

 protected:
  Holder outputs_;

 private:
  void set(std::int64_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool exact, Names... names) {
    outputs_.set(static_cast<std::size_t>(i), sizes, strides, options, exact);
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      Meta::set_output_raw_strided(i, sizes, strides, options, names...);
    }
  }
};

/// The dtypes that the functional variant of an elementwise operator would have given its results,
/// from its meta function run on tensors without memory.
template <std::size_t count>
class NoOutputs {
 public:
  const at::Tensor& get(std::size_t i) const { return tensors_[i]; }
  at::ScalarType dtype(std::size_t i) const { return tensors_[i].scalar_type(); }

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef,
           const at::TensorOptions& options, bool) {
    tensors_[i] = at::Tensor(
        at::detail::empty_meta(sizes, c10::typeMetaToScalarType(options.dtype()), std::nullopt));
  }

 private:
  std::array<at::Tensor, count> tensors_;
};

}  // namespace kernel_detail

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

  /// Whether the kernel is to be called: it computes the dtypes that the meta function has worked
  /// out. `inputs` are the arguments of the operator.
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

  /// The dtype that the kernel does not compute; Undefined when it was to be called.
  at::ScalarType refused() const { return refused_; }

  /// An argument as the kernel gets it.
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

  /// The tensor that the kernel writes its result number `i` to.
  const at::Tensor& out(std::size_t i) const {
    if constexpr (kDense) {
      if (buffers_[i].defined()) return buffers_[i];
    }
    return this->outputs_.get(i);
  }

  /// Brings the results to where they belong.
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

  /// Elementwise operators compute in the common dtype of their inputs, and those with an argument
  /// `dtype` in that of the result.
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

  /// A result that the kernel cannot write to as it is gets a buffer: its strides are not plain,
  /// the kernel computes another dtype, or it would overwrite what a kernel that is not elementwise
  /// still reads.
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

/// Arguments of the dispatcher as structured kernels take them.
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

// In this form meta functions take a list that lasts as long as the call.
inline at::IOptTensorListRef structured_argument(const c10::List<std::optional<at::Tensor>>& list) {
  return at::IOptTensorListRef(list);
}

}  // namespace kernel_detail

/// A variant of a structured operator, for which `Traits::run(call, arguments...)` runs the meta
/// function and the kernel.
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
