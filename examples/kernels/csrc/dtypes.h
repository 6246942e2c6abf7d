#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace foo {

/// Calls `body` with a value of the C++ type of a dtype, one of those that backend.toml lists. The
/// gate sends all others elsewhere before a kernel is called, but a kernel may have fewer.
template <class Body>
void for_dtype(at::ScalarType dtype, const char* op, const Body& body) {
  switch (dtype) {
    case at::kFloat:
      return body(float());
    case at::kInt:
      return body(std::int32_t());
    case at::kLong:
      return body(std::int64_t());
    case at::kBool:
      return body(bool());
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, '"', op, "\" not implemented for '", dtype, "'");
  }
}

/// The type in which numbers are summed up.
template <class T>
struct Sum {
  using type = std::int64_t;
};

template <>
struct Sum<float> {
  using type = double;
};

}  // namespace foo
