// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <c10/core/InferenceMode.h>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/stream_point.h>

namespace backendkit {

/// A tensor of the device and as many bytes of the host, between which a group copies. On a device
/// whose memory the host can access, these are the same bytes, and nothing is copied.
class StagedBuffer {
 public:
  /// Allocates the host's side. A tensor with gaps, or in another order, gets a dense copy on the
  /// current stream; unless `reads`, that copy has no values.
  StagedBuffer(const at::Tensor& tensor, bool reads)
      : tensor_(tensor.detach()), is_shared_(device_facts().host_accessible(tensor.get_device())) {
    TORCH_CHECK_VALUE(!tensor.is_conj() && !tensor.is_neg(),
                      "a tensor with conjugated or negated bits must be resolved first");
    // Gloo and the group write to these on threads of their own, which have no inference mode.
    const c10::InferenceMode normal(false);
    dense_ = tensor_.is_contiguous() ? tensor_
             : reads                 ? tensor_.contiguous()
                                     : at::empty(tensor_.sizes(), tensor_.options());
    device_ = dense_.view({-1}).view(at::kByte);
    const at::TensorOptions host = at::TensorOptions(at::kCPU).dtype(at::kByte);
    host_ = is_shared_
                ? at::from_blob(device_.mutable_data_ptr(), device_.sizes(), host)
                : at::empty(device_.sizes(), host.pinned_memory(device_facts().has_pinned_memory));
  }

  const at::Tensor& tensor() const { return tensor_; }
  std::int64_t bytes() const { return host_.numel(); }

  /// The bytes from `begin` to `end` on the host.
  at::Tensor host(std::int64_t begin, std::int64_t end) const { return part(host_, begin, end); }
  const at::Tensor& host() const { return host_; }

  /// The numbers in these bytes, as a host tensor with one dimension.
  at::Tensor values(std::int64_t begin, std::int64_t end) const {
    return host(begin, end).view(dense_.scalar_type());
  }

  /// Starts a copy of bytes to the host on the current stream of the device. With pinned memory,
  /// the host does not wait.
  void to_host(std::int64_t begin, std::int64_t end) const {
    if (!is_shared_) part(host_, begin, end).copy_(part(device_, begin, end), true);
  }

  /// Starts a copy of bytes to the device.
  void from_host(std::int64_t begin, std::int64_t end) const {
    if (!is_shared_) part(device_, begin, end).copy_(part(host_, begin, end), true);
  }

  /// Ends the use of a tensor that was written: brings the values to a tensor that is not dense,
  /// and keeps the memory for what the stream, which is current, still does with it. Returns
  /// whether the stream does anything.
  bool finish(const c10::Stream& stream) const {
    const bool is_dense = dense_.is_same(tensor_);
    if (!is_dense) tensor_.copy_(dense_);
    if (is_dense && is_shared_) return false;
    device_guard().recordDataPtrOnStream(tensor_.storage().data_ptr(), stream);
    device_guard().recordDataPtrOnStream(dense_.storage().data_ptr(), stream);
    return true;
  }

  /// Whether the host accesses the device's memory itself.
  bool is_shared() const { return is_shared_; }

 private:
  static at::Tensor part(const at::Tensor& bytes, std::int64_t begin, std::int64_t end) {
    return bytes.narrow(0, begin, end - begin);
  }

  at::Tensor tensor_;
  at::Tensor dense_;   ///< the same tensor if it is dense
  at::Tensor device_;  ///< its bytes
  at::Tensor host_;
  bool is_shared_;
};

}  // namespace backendkit
