#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/result_type.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

namespace foo {

// How kernels reach the elements of a tensor: with `inputs = "strided"` it has any strides, may
// have fewer dimensions and another dtype than the result, and may be a single number on the CPU.

constexpr std::size_t kMaxDims = 64;

/// Where the elements of a tensor are that is broadcast to some sizes, counted row by row.
class Places {
 public:
  Places(const at::Tensor& tensor, at::IntArrayRef sizes)
      : plain_(tensor.is_contiguous() && tensor.sizes() == sizes), dims_(sizes.size()) {
    TORCH_CHECK(dims_ <= kMaxDims, "tensors have at most ", kMaxDims, " dimensions");
    const std::size_t missing = dims_ - tensor.sizes().size();
    for (std::size_t i = 0; i < dims_; ++i) {
      sizes_[i] = sizes[i];
      const bool repeated = i < missing || tensor.sizes()[i - missing] == 1;
      strides_[i] = repeated ? 0 : tensor.strides()[i - missing];
    }
  }

  std::int64_t operator[](std::int64_t number) const {
    if (plain_) return number;
    std::int64_t place = 0;
    for (std::size_t i = dims_; i-- > 0; number /= sizes_[i]) {
      place += number % sizes_[i] * strides_[i];
    }
    return place;
  }

 private:
  bool plain_;
  std::size_t dims_;
  std::array<std::int64_t, kMaxDims> sizes_;
  std::array<std::int64_t, kMaxDims> strides_;
};

/// Calls `body` with a value of the C++ type of any real dtype.
template <class Body>
auto for_any_dtype(at::ScalarType dtype, const Body& body) {
  switch (dtype) {
    case at::kDouble:
      return body(double());
    case at::kFloat:
      return body(float());
    case at::kHalf:
      return body(c10::Half());
    case at::kBFloat16:
      return body(c10::BFloat16());
    case at::kLong:
      return body(std::int64_t());
    case at::kInt:
      return body(std::int32_t());
    case at::kShort:
      return body(std::int16_t());
    case at::kChar:
      return body(std::int8_t());
    case at::kByte:
      return body(std::uint8_t());
    case at::kBool:
      return body(bool());
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "no kernel reads '", dtype, "'");
  }
}

/// The elements of a tensor as values of `T`. A number on the CPU can be read where it is since the
/// simulated device shares the CPU's memory; on your device, pass it on by value.
template <class T>
class Elements {
 public:
  Elements(const at::Tensor& tensor, at::IntArrayRef sizes)
      : places_(tensor, sizes),
        data_(static_cast<const std::byte*>(tensor.const_data_ptr())),
        size_(static_cast<std::int64_t>(tensor.element_size())) {
    for_any_dtype(tensor.scalar_type(), [&](auto zero) {
      load_ = [](const std::byte* from) {
        return static_cast<T>(*reinterpret_cast<const decltype(zero)*>(from));
      };
    });
  }

  T operator[](std::int64_t number) const { return load_(data_ + places_[number] * size_); }

 private:
  Places places_;
  const std::byte* data_;
  std::int64_t size_;
  T (*load_)(const std::byte*) = nullptr;
};

/// The elements of a result, which kernels set to values of `T`.
template <class T>
class Slots {
 public:
  explicit Slots(const at::Tensor& tensor)
      : places_(tensor, tensor.sizes()),
        data_(static_cast<std::byte*>(tensor.mutable_data_ptr())),
        size_(static_cast<std::int64_t>(tensor.element_size())) {
    for_any_dtype(tensor.scalar_type(), [&](auto zero) {
      using Stored = decltype(zero);
      store_ = [](std::byte* to, T value) {
        *reinterpret_cast<Stored*>(to) = static_cast<Stored>(value);
      };
    });
  }

  class Slot {
   public:
    Slot(const Slots& slots, std::int64_t number)
        : to_(slots.data_ + slots.places_[number] * slots.size_), store_(slots.store_) {}
    void operator=(T value) const { store_(to_, value); }

   private:
    std::byte* to_;
    void (*store_)(std::byte*, T);
  };

  Slot operator[](std::int64_t number) const { return {*this, number}; }

 private:
  Places places_;
  std::byte* data_;
  std::int64_t size_;
  void (*store_)(std::byte*, T) = nullptr;
};

/// The elements of a kernel's input, broadcast to sizes.
template <class T>
Elements<T> read(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return Elements<T>(tensor, sizes);
}

/// The elements of a kernel's result.
template <class T>
Slots<T> write(const at::Tensor& tensor) {
  return Slots<T>(tensor);
}

/// The dtype in which to compute an elementwise operator.
inline at::ScalarType common_dtype(const at::Tensor& self, const at::Tensor& other) {
  return at::result_type(self, other);
}

}  // namespace foo
