#pragma once

#include <optional>

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace ocl {

/// A dtype that kernels know, with the name that csrc/kernels/types.cl has for it. uint8 and int16
/// are there for copies: backend.toml does not list them.
struct Dtype {
  int code;  ///< below 8
  const char* name;
};

inline std::optional<Dtype> known_dtype(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return Dtype{0, "f32"};
    case c10::ScalarType::Half:
      return Dtype{1, "f16"};
    case c10::ScalarType::BFloat16:
      return Dtype{2, "bf16"};
    case c10::ScalarType::Long:
      return Dtype{3, "i64"};
    case c10::ScalarType::Int:
      return Dtype{4, "i32"};
    case c10::ScalarType::Bool:
      return Dtype{5, "bool"};
    case c10::ScalarType::Byte:
      return Dtype{6, "u8"};
    case c10::ScalarType::Short:
      return Dtype{7, "i16"};
    default:
      return std::nullopt;
  }
}

inline Dtype dtype_of(c10::ScalarType type) {
  const std::optional<Dtype> known = known_dtype(type);
  TORCH_CHECK_NOT_IMPLEMENTED(known.has_value(), "no kernel of OpenCL computes ", type);
  return *known;
}

inline bool is_known(c10::ScalarType type) { return known_dtype(type).has_value(); }

inline bool is_floating(c10::ScalarType type) { return dtype_of(type).code < 3; }

}  // namespace ocl
