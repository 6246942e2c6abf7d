// Copies between tensors with strides, and from one dtype to another.

#include <optional>

#include <ATen/core/Tensor.h>

#include "dtypes.h"
#include "elementwise.h"
#include "runtime.h"

namespace ocl {

namespace {

constexpr Expression kCopy{"copy_", "a"};

/// The integer that is as large as a dtype's numbers, if there is one.
std::optional<c10::ScalarType> bits_of(c10::ScalarType type) {
  switch (c10::elementSize(type)) {
    case 1:
      return c10::ScalarType::Byte;
    case 2:
      return c10::ScalarType::Short;
    case 4:
      return c10::ScalarType::Int;
    case 8:
      return c10::ScalarType::Long;
    default:
      return std::nullopt;
  }
}

/// The same memory, read as numbers of another dtype of the same size.
at::Tensor read_as(const at::Tensor& tensor, c10::ScalarType type) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return made;
}

}  // namespace

bool Runtime::copy_elements(const at::Tensor& src, const at::Tensor& dst) {
  const c10::ScalarType from = src.scalar_type();
  const c10::ScalarType to = dst.scalar_type();
  if (from == to) {
    const std::optional<c10::ScalarType> bits = bits_of(from);
    if (!bits) return false;
    const at::Tensor input = read_as(src, *bits);
    elementwise(kCopy, *bits, read_as(dst, *bits), {&input});
    return true;
  }
  if (!known_dtype(from) || !known_dtype(to)) return false;
  // Converted to bool, 0.5 is true. Numbers of 16 bits are rounded once, when they are written.
  const auto number = to == c10::ScalarType::Bool ? from : is_floating(to) ? at::kFloat : to;
  elementwise(kCopy, number, dst, {&src});
  return true;
}

}  // namespace ocl
