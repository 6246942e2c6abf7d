#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

namespace ocl {

/// How elements become one: a total `t` and an element `a`, or two totals `t` and `a`, make a
/// total; OpenCL C, for numbers and for vectors. The texts live as long as the process.
struct Reducer {
  const char* op;
  const char* start;
  const char* step;
  const char* combine;
  const char* finish = "t";  ///< the result, of a total `t` and the number `x`
};

inline constexpr Reducer kSum{"sum", "0", "t + a", "t + a"};
inline constexpr Reducer kMean{"mean", "0", "t + a", "t + a", "t / x"};
/// Of the distances from the mean, `m`.
inline constexpr Reducer kVariance{"var", "0", "t + (a - m) * (a - m)", "t + a", "t / x"};

/// Writes to each element of `out` what the elements of `self` become that differ from it only in
/// `dims`; without dims, in all. `out` has the shape of the result, with these dimensions or not. Computes in the dtype `number`, which has a kernel's
/// number type of its own: float32, int64, int32 or bool. `shift`, if it is defined, is contiguous
/// float32 with as many elements as `out`: the numbers `m` that `step` may use.
void reduce(const Reducer& reducer, const at::Tensor& self, at::OptionalIntArrayRef dims,
            c10::ScalarType number, const at::Tensor& out, double x = 0,
            const at::Tensor& shift = {});

}  // namespace ocl
