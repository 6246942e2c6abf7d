// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <backendkit/collectives.h>
#include <backendkit/distributed/reduction.h>

namespace backendkit {

/// Numbers as the driver reduces them.
struct DriverNumbers {
  NumberType type;
  Reduce reduce;
  std::int64_t each;             ///< numbers in an element: 2 in a complex one
  std::optional<double> factor;  ///< of PREMUL_SUM

  /// Nothing if the driver cannot have such a reduction. Throws ValueError if nobody has.
  static std::optional<DriverNumbers> of(const c10d::ReduceOp& op, const at::Tensor& tensor,
                                         int ranks) {
    const at::ScalarType dtype = tensor.scalar_type();
    const Reduction checked(op, dtype, ranks);
    const bool complex = at::isComplexType(dtype);
    const auto type = type_of(complex ? c10::toRealValueType(dtype) : dtype);
    if (!type) return std::nullopt;
    // The host truncates averages of integers, and scales with one rounding, real and imaginary
    // parts apart.
    if (op.op_ == c10d::ReduceOp::AVG && !at::isFloatingType(dtype) && !complex)
      return std::nullopt;
    if (checked.factor() && dtype != at::kFloat && dtype != at::kDouble) return std::nullopt;
    const bool boolean = dtype == at::kBool;
    const auto how = op.op_ == c10d::ReduceOp::AVG ? Reduce::kAverage
                     : boolean                     ? reduce_of(checked.host_op().op_)
                     : checked.factor()            ? Reduce::kSum
                                                   : reduce_of(op.op_);
    return DriverNumbers{*type, how, complex ? 2 : 1, checked.factor()};
  }

 private:
  static std::optional<NumberType> type_of(at::ScalarType dtype) {
    switch (dtype) {
      case at::kBool:
      case at::kByte:
        return NumberType::kUInt8;
      case at::kChar:
        return NumberType::kInt8;
      case at::kShort:
        return NumberType::kInt16;
      case at::kInt:
        return NumberType::kInt32;
      case at::kLong:
        return NumberType::kInt64;
      case at::kHalf:
        return NumberType::kFloat16;
      case at::kBFloat16:
        return NumberType::kBFloat16;
      case at::kFloat:
        return NumberType::kFloat32;
      case at::kDouble:
        return NumberType::kFloat64;
      default:
        return std::nullopt;
    }
  }

  static Reduce reduce_of(c10d::ReduceOp::RedOpType op) {
    using Op = c10d::ReduceOp;
    switch (op) {
      case Op::PRODUCT:
        return Reduce::kProduct;
      case Op::MIN:
        return Reduce::kMin;
      case Op::MAX:
        return Reduce::kMax;
      case Op::BAND:
        return Reduce::kBitAnd;
      case Op::BOR:
        return Reduce::kBitOr;
      case Op::BXOR:
        return Reduce::kBitXor;
      default:
        return Reduce::kSum;
    }
  }
};

}  // namespace backendkit
