// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

// Without this, ATen/native/Resize.h includes all operators of PyTorch.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>

namespace backendkit {

/// The variants of a structured operator: `add`, `add_`, `add.out`.
enum class Variant { kFunctional, kInPlace, kOut };

namespace kernel_detail {

/// A new tensor on the device of `options`, which is the current one.
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

/// The outputs of a structured operator: new tensors or the caller's. If a caller's tensor needs
/// other strides, a temporary tensor is written instead and copied.
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
class CallerOutputs {
 public:
  template <class... Tensors>
  explicit CallerOutputs(Tensors&... tensors) : tensors_{std::ref(tensors)...} {}

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
  at::Tensor& caller_tensor(std::size_t i) { return tensors_[i].get(); }

  /// PyTorch's meta functions require exact strides if their kernels need them.
  void match_strides(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                     const at::TensorOptions& options, bool exact) {
    if (exact && caller_tensor(i).strides() != strides)
      stand_ins_[i] = new_output(sizes, strides, options);
  }

 private:
  std::array<std::reference_wrapper<at::Tensor>, count> tensors_;
  std::array<at::Tensor, count> stand_ins_;
};

template <std::size_t count>
class Outputs<Variant::kInPlace, count> : public CallerOutputs<count> {
 public:
  using CallerOutputs<count>::CallerOutputs;

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool exact) {
    const at::Tensor& self = this->caller_tensor(i);
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
class Outputs<Variant::kOut, count> : public CallerOutputs<count> {
 public:
  using CallerOutputs<count>::CallerOutputs;

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
           const at::TensorOptions& options, bool exact) {
    at::Tensor& out = this->caller_tensor(i);
    TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ",
                options.dtype(), ", but got ", out.dtype(), " instead");
    TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ",
                options.device(), ", but got ", out.device(), " instead");
    // The caller's strides are kept unless the tensor had another size.
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

/// A meta class of PyTorch with BackendKit's outputs. The second parameter is the type of the
/// function that meta classes call, which has one more parameter in older releases.
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

/// The dtypes that the functional variant of an elementwise operator would give its results,
/// obtained by running its meta function on tensors without memory.
template <std::size_t count>
class NoOutputs {
 public:
  const at::Tensor& get(std::size_t i) const { return tensors_[i]; }

  void set(std::size_t i, c10::IntArrayRef sizes, c10::IntArrayRef,
           const at::TensorOptions& options, bool) {
    tensors_[i] = at::Tensor(
        at::detail::empty_meta(sizes, c10::typeMetaToScalarType(options.dtype()), std::nullopt));
  }

 private:
  std::array<at::Tensor, count> tensors_;
};

}  // namespace kernel_detail

}  // namespace backendkit
