// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <c10/core/ScalarType.h>

// The vocabulary in which generated code describes a kernel.

namespace backendkit {

/// The positions of the arguments that determine a kernel's device, in order of preference. CPU
/// scalars, undefined tensors and empty lists determine nothing, so the next position is tried.
template <std::size_t... positions>
struct DeviceOf {};

/// The name of an operator, such as "add.out", as a template argument.
template <std::size_t size>
struct Name {
  char text[size];

  consteval Name(const char (&name)[size]) { std::copy_n(name, size, text); }

  constexpr std::string_view view() const { return {text, size - 1}; }
  /// "add" of "add.out", and "out".
  std::string base() const { return std::string(view().substr(0, view().find('.'))); }
  std::string overload() const {
    const std::size_t dot = view().find('.');
    return dot == std::string_view::npos ? "" : std::string(view().substr(dot + 1));
  }
};

/// A set of dtypes.
class Dtypes {
 public:
  static constexpr Dtypes all() { return Dtypes(~std::uint64_t{0}); }

  constexpr Dtypes(std::initializer_list<at::ScalarType> dtypes) {
    for (const at::ScalarType dtype : dtypes) bits_ |= bit(dtype);
  }

  constexpr bool has(at::ScalarType dtype) const { return (bits_ & bit(dtype)) != 0; }
  constexpr bool has_all() const { return ~bits_ == 0; }

 private:
  explicit constexpr Dtypes(std::uint64_t bits) : bits_(bits) {}

  static constexpr std::uint64_t bit(at::ScalarType dtype) {
    static_assert(static_cast<int>(at::ScalarType::NumOptions) <= 64);
    return std::uint64_t{1} << static_cast<int>(dtype);
  }

  std::uint64_t bits_ = 0;
};

/// The tensors that a kernel receives: as PyTorch passes them; or contiguous, and for elementwise
/// operators also of one shape and dtype.
enum class Inputs { kStrided, kDense };

/// What happens to a call with unsupported dtypes: the same as for operators without a kernel, or
/// the error of PyTorch's own kernels.
enum class Unsupported { kFallback, kError };

/// The traits of a kernel, with the most common values. For each kernel, generated code derives a
/// type that redefines the values that differ. It also adds `static constexpr const char*
/// kArguments`, such as "self, other, alpha, out", for errors.
struct KernelTraits {
  static constexpr bool kOneDevice = true;  // PyTorch requires its tensors to be on one device
  static constexpr Inputs kInputs = Inputs::kStrided;
  static constexpr Dtypes kDtypes = Dtypes::all();  // the supported dtypes
  static constexpr Unsupported kUnsupported = Unsupported::kFallback;
  static constexpr bool kElementwise = false;  // a result's element depends on one per input
  static constexpr bool kHasDtype = false;     // an argument specifies the dtype of the result
};

}  // namespace backendkit
