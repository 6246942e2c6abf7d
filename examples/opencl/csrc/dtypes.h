#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace ocl {

/// The dtypes that kernels know, with the names that csrc/kernels/types.cl has for them.
struct Dtype {
  int code;  ///< below 8
  const char* name;
};

inline Dtype dtype_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return {0, "f32"};
    case c10::ScalarType::Half:
      return {1, "f16"};
    case c10::ScalarType::BFloat16:
      return {2, "bf16"};
    case c10::ScalarType::Long:
      return {3, "i64"};
    case c10::ScalarType::Int:
      return {4, "i32"};
    case c10::ScalarType::Bool:
      return {5, "bool"};
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "no kernel of OpenCL computes ", type);
  }
}

inline bool is_known(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Long:
    case c10::ScalarType::Int:
    case c10::ScalarType::Bool:
      return true;
    default:
      return false;
  }
}

inline bool is_floating(c10::ScalarType type) { return dtype_of(type).code < 3; }

}  // namespace ocl
