#include "vector_product.h"

#include <algorithm>
#include <limits>
#include <string>

#include "dtypes.h"
#include "launch.h"

namespace ocl {

namespace {

constexpr std::int64_t kGroups = 64;  // of a GPU's unit: enough to keep it busy

/// The product, with the vector on the right.
struct Shape {
  const Matrix& matrix;
  const Matrix& vector;
  std::int64_t rows, columns;
  std::int64_t apart, column;  ///< strides of the matrix
  std::int64_t element;        ///< of the vector
  std::int64_t out, added;     ///< of the results
};

Shape shape_of(const Sizes& sizes, const Matrix& out, const Matrix& a, const Matrix& b,
               const Matrix* added) {
  if (sizes.n == 1) {
    return {a,
            b,
            sizes.m,
            sizes.k,
            a.strides.row,
            a.strides.column,
            b.strides.row,
            out.strides.row,
            added == nullptr ? 0 : added->strides.row};
  }
  return {b,
          a,
          sizes.n,
          sizes.k,
          b.strides.column,
          b.strides.row,
          a.strides.column,
          out.strides.column,
          added == nullptr ? 0 : added->strides.column};
}

}  // namespace

bool multiply_vector(const char* op, const Sizes& sizes, const Matrix& out, const Matrix& a,
                     const Matrix& b, const Matrix* added, const at::Scalar& alpha,
                     const at::Scalar& beta) {
  const bool one = sizes.batches * sizes.groups * sizes.sums == 1;
  if (!one || (sizes.n != 1 && sizes.m != 1) || a.window != nullptr || b.window != nullptr) {
    return false;
  }
  const Shape shape = shape_of(sizes, out, a, b, added);
  if ((shape.column != 1 || shape.element != 1) && shape.columns > 1) return false;
  const auto most = std::max({shape.rows * std::max<std::int64_t>(shape.apart, 1), shape.columns,
                              shape.rows * shape.out, shape.rows * shape.added});
  const bool small = most + (1 << 16) < std::numeric_limits<std::int32_t>::max();
  const auto type = a.tensor.scalar_type(), to = out.tensor.scalar_type();
  const std::uint64_t macros = (small ? 1U : 0U) | (added != nullptr ? 2U : 0U) |
                               static_cast<unsigned>(dtype_of(type).code) << 2 |
                               static_cast<unsigned>(dtype_of(to).code) << 6;
  const int index = out.tensor.device().index();
  Launch launch(op, index, {"matvec", "matvec", nullptr, macros}, [&] {
    return std::string("#define INDEX ") + (small ? "int" : "long") + "\n#define TYPE " +
           dtype_of(type).name + "\n#define OUT " + dtype_of(to).name +
           (added != nullptr ? "\n#define ADDED\n" : "\n");
  });
  const auto pass = [&](std::int64_t number) {
    if (small) {
      launch.value(static_cast<std::int32_t>(number));
    } else {
      launch.value(number);
    }
  };
  for (const std::int64_t number : {shape.rows, shape.columns, shape.apart, shape.out}) {
    pass(number);
  }
  launch.number(alpha, type).output(out.tensor);
  launch.tensor(shape.matrix.tensor).tensor(shape.vector.tensor);
  if (added != nullptr) {
    launch.number(beta, type).tensor(added->tensor);
    pass(shape.added);
  }
  const Device& device = device_at(index);
  const std::int64_t useful =
      device.is_cpu ? std::max<std::int64_t>(1, shape.rows * shape.columns >> 14) : shape.rows;
  const std::int64_t limit =
      static_cast<std::int64_t>(device.units) * (device.is_cpu ? 2 : kGroups);
  const auto groups = static_cast<std::size_t>(std::min({useful, limit, shape.rows}));
  launch.run({groups, 1, 1}, {device.is_cpu ? 1U : 64U, 1, 1});  // GROUP
  return true;
}

}  // namespace ocl
