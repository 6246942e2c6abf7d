// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <c10/core/ScalarType.h>

// The words in which generated code says of a kernel what the description says.

namespace backendkit {

/// The positions of the arguments that tell which device a kernel works on, best first. Scalars on
/// the CPU, undefined tensors and empty lists among them tell nothing, so the next one is asked.
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

/// What a kernel's tensors are like: as PyTorch passes them; or contiguous, and for elementwise
/// operators of one shape and dtype as well.
enum class Inputs { kStrided, kDense };

/// What a call does whose dtypes the kernel does not compute: what operators without a kernel do,
/// or raise the error of PyTorch's own kernels.
enum class Unsupported { kFallback, kError };

/// The traits of a kernel, with the values that most kernels have. Generated code derives a type
/// from it for each kernel. That type adds `static constexpr const char* kArguments`, such as
/// "self, other, alpha, out", for errors, and redefines each value that differs.
struct KernelTraits {
  static constexpr bool kOneDevice = true;  // PyTorch wants its tensors on one device
  static constexpr Inputs kInputs = Inputs::kStrided;
  static constexpr Dtypes kDtypes = Dtypes::all();  // what it computes
  static constexpr Unsupported kUnsupported = Unsupported::kFallback;
  static constexpr bool kElementwise = false;  // a result's element depends on one of each input
  static constexpr bool kHasDtype = false;     // an argument says the dtype of the result
};

}  // namespace backendkit
