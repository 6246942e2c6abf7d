// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include <backendkit/distributed/c10d.h>

namespace backendkit {

/// How the host reduces tensors of one dtype. Gloo has sums, products, extrema and bitwise
/// operations of some dtypes. Averages and scaled sums are made of sums. Other dtypes are reduced
/// in one that represents all of their values, and the result is rounded once.
class Reduction {
 public:
  /// Throws ValueError for a reduction that the dtype does not have.
  Reduction(const c10d::ReduceOp& op, at::ScalarType dtype, int ranks)
      : op_(op.op_), dtype_(dtype), ranks_(ranks) {
    using Op = c10d::ReduceOp;
    TORCH_CHECK_VALUE(op_ != Op::UNUSED, "unknown reduction");
    const bool bitwise = op_ == Op::BAND || op_ == Op::BOR || op_ == Op::BXOR;
    const bool real = at::isFloatingType(dtype);
    const bool complex = at::isComplexType(dtype);
    TORCH_CHECK_VALUE(!bitwise || !(real || complex), "a bitwise reduction of ", dtype,
                      " does not exist: it needs integers or bool");
    TORCH_CHECK_VALUE(!complex || op_ == Op::SUM || op_ == Op::AVG || op_ == Op::PREMUL_SUM,
                      "complex numbers have sums and averages, and no other reduction");
    TORCH_CHECK_VALUE(dtype != at::kBool || op_ != Op::AVG,
                      "bool has no averages: use ReduceOp.SUM");
    TORCH_CHECK_VALUE(real || complex || op_ != Op::PREMUL_SUM, "a scaled sum of ", dtype,
                      " does not exist: it needs floating-point or complex numbers");
    if (op_ == Op::PREMUL_SUM) factor_ = factor_of(op);
  }

  /// Of PREMUL_SUM.
  const std::optional<double>& factor() const { return factor_; }

  /// The operation of Gloo.
  c10d::ReduceOp host_op() const {
    using Op = c10d::ReduceOp;
    if (dtype_ != at::kBool) return scales() ? Op(Op::SUM) : Op(op_);
    if (op_ == Op::SUM || op_ == Op::MAX || op_ == Op::BOR) return Op(Op::MAX);
    return op_ == Op::BXOR ? Op(Op::BXOR) : Op(Op::MIN);
  }

  /// The values of `raw`, a dense host tensor with one dimension, as Gloo reduces them; shares its
  /// memory where it can.
  at::Tensor load(const at::Tensor& raw) const {
    at::Tensor values = at::isComplexType(dtype_) ? raw.view(real_of(dtype_)) : raw;
    const at::ScalarType from = values.scalar_type();
    const at::ScalarType to = reduced_in(from);
    if (to != from) {
      values = to == at::kLong && from == kUInt64 ? values.view(at::kLong).bitwise_xor(flip())
               : same_bits(from, to)              ? values.view(to)
                                                  : values.to(to);
    }
    if (factor_) values.mul_(at::Scalar(*factor_));
    return values;
  }

  /// Writes what Gloo made of `load(raw)` to `raw`.
  void store(at::Tensor values, const at::Tensor& raw) const {
    if (op_ == c10d::ReduceOp::AVG) {
      if (values.is_floating_point()) {
        values.div_(ranks_);
      } else if (dtype_ == kUInt64) {
        auto* const bits =
            reinterpret_cast<std::uint64_t*>(values.mutable_data_ptr<std::int64_t>());
        for (std::int64_t i = 0; i < values.numel(); ++i) bits[i] /= static_cast<unsigned>(ranks_);
      } else {
        values.div_(ranks_, "trunc");
      }
    }
    const at::Tensor to = at::isComplexType(dtype_) ? raw.view(real_of(dtype_)) : raw;
    if (values.const_data_ptr() == to.const_data_ptr()) return;
    if (to.scalar_type() == kUInt64) {
      to.view(at::kLong).copy_(values.bitwise_xor(flip()));
    } else {
      to.copy_(values);
    }
  }

  /// Reduces the values of another rank into those of this one; both come from `load`.
  void combine(at::Tensor& into, const at::Tensor& other) const {
    using Op = c10d::ReduceOp;
    switch (host_op().op_) {
      case Op::SUM:
        into.add_(other);
        break;
      case Op::PRODUCT:
        into.mul_(other);
        break;
      case Op::MIN:
        at::minimum_out(into, into, other);
        break;
      case Op::MAX:
        at::maximum_out(into, into, other);
        break;
      case Op::BAND:
        into.bitwise_and_(other);
        break;
      case Op::BOR:
        into.bitwise_or_(other);
        break;
      default:
        into.bitwise_xor_(other);
        break;
    }
  }

 private:
  static constexpr auto kUInt16 = at::ScalarType::UInt16;
  static constexpr auto kUInt32 = at::ScalarType::UInt32;
  static constexpr auto kUInt64 = at::ScalarType::UInt64;

  bool scales() const { return op_ == c10d::ReduceOp::AVG || op_ == c10d::ReduceOp::PREMUL_SUM; }

  bool compares() const { return op_ == c10d::ReduceOp::MIN || op_ == c10d::ReduceOp::MAX; }

  static at::ScalarType real_of(at::ScalarType complex) { return c10::toRealValueType(complex); }

  /// With this, the order of unsigned numbers becomes that of signed ones.
  std::int64_t flip() const { return compares() ? std::numeric_limits<std::int64_t>::min() : 0; }

  static bool same_bits(at::ScalarType from, at::ScalarType to) {
    return from == at::kBool && to == at::kByte;
  }

  at::ScalarType reduced_in(at::ScalarType dtype) const {
    switch (dtype) {
      case at::kFloat:
      case at::kDouble:
      case at::kByte:
      case at::kChar:
      case at::kInt:
      case at::kLong:
        return dtype;
      case at::kBool:
        return at::kByte;
      case at::kShort:
      case kUInt16:
        return at::kInt;
      case kUInt32:
      case kUInt64:
        return at::kLong;
      default:
        TORCH_CHECK_VALUE(at::isFloatingType(dtype), "tensors of ", dtype, " cannot be reduced");
        return at::kFloat;
    }
  }

  static double factor_of(const c10d::ReduceOp& op) {
    const auto* const supplement =
        static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
    TORCH_CHECK_VALUE(supplement != nullptr, "ReduceOp.PREMUL_SUM needs a factor");
    return supplement->tensor_factor.defined() ? supplement->tensor_factor.item().toDouble()
                                               : supplement->double_factor;
  }

  c10d::ReduceOp::RedOpType op_;
  at::ScalarType dtype_;
  int ranks_;
  std::optional<double> factor_;
};

}  // namespace backendkit
