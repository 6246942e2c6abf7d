// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <backendkit/transfers.h>

namespace backendkit {

/// The bytes from a tensor's first element to the end of its last. Strides are never negative.
inline std::size_t span_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<std::size_t>(last + 1) * tensor.itemsize();
}

/// Where a tensor's elements are: runs of bytes without gaps, all of one length.
class Runs {
 public:
  explicit Runs(const at::Tensor& tensor) : length_(static_cast<std::int64_t>(tensor.itemsize())) {
    if (tensor.numel() == 0) {
      count_ = 0;
      return;
    }
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      if (tensor.size(i) == 1) continue;
      if (tensor.stride(i) == 0) {
        repeated_ = true;
      } else {
        outer_.emplace_back(tensor.stride(i) * length_, tensor.size(i));
      }
    }
    std::sort(outer_.begin(), outer_.end());
    std::size_t dense = 0;
    while (dense < outer_.size() && outer_[dense].first == length_) {
      length_ *= outer_[dense++].second;
    }
    outer_.erase(outer_.begin(), outer_.begin() + dense);
    for (const auto& [stride, size] : outer_) count_ *= size;
  }

  /// Whether a copy of each is at most about as dear as one of the tensor with its gaps, or that
  /// cannot be, since elements are in one place.
  bool few() const { return count_ <= 256 || length_ >= 1 << 16 || repeated_; }

  /// Calls `visit(begin, end)` for each, in bytes from the tensor's first element.
  template <class Visit>
  void each(Visit&& visit) const {
    c10::SmallVector<std::int64_t, 6> index(outer_.size(), 0);
    std::int64_t begin = 0;
    for (std::int64_t run = 0; run < count_; ++run) {
      visit(static_cast<std::size_t>(begin), static_cast<std::size_t>(begin + length_));
      for (std::size_t i = 0; i < outer_.size(); ++i) {
        begin += outer_[i].first;
        if (++index[i] < outer_[i].second) break;
        begin -= outer_[i].first * outer_[i].second;
        index[i] = 0;
      }
    }
  }

 private:
  std::int64_t length_;
  std::int64_t count_ = 1;
  bool repeated_ = false;
  c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 6> outer_;  ///< stride in bytes, size
};

/// Writes the elements of a strided tensor of the host to memory of the device, at `first` and on
/// the same strides. What lies between them is others' and stays as it is: where there are more
/// runs than can be copied one by one, the gaps are read and written back, one thread at a time and
/// when no work of the device is under way. Done when it returns; returns the bytes copied.
template <class Runtime>
std::size_t write_elements(void* first, c10::DeviceIndex device, const at::Tensor& host) {
  auto* const there = static_cast<char*>(first);
  const auto* const here = static_cast<const char*>(host.const_data_ptr());
  std::size_t copied = 0;
  const Runs runs(host);
  if (runs.few()) {
    Transfers<Runtime> transfers;
    runs.each([&](std::size_t begin, std::size_t end) {
      transfers.begin(there + begin, here + begin, end - begin, CopyKind::kHostToDevice, device);
      copied += end - begin;
    });
    transfers.finish();
    return copied;
  }
  at::Tensor whole =
      at::detail::empty_strided_cpu(host.sizes(), host.strides(), host.scalar_type());
  whole._set_conj(host.is_conj());
  whole._set_neg(host.is_neg());
  const auto copy = [&](void* dst, const void* src, CopyKind kind) {
    Transfers<Runtime> transfers;
    transfers.begin(dst, src, span_of(host), kind, device);
    transfers.finish();
    copied += span_of(host);
  };
  static auto* const mutex = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mutex);
  Devices<Runtime>::synchronize(device);
  copy(whole.mutable_data_ptr(), first, CopyKind::kDeviceToHost);
  whole.copy_(host);
  copy(first, whole.const_data_ptr(), CopyKind::kHostToDevice);
  return copied;
}

}  // namespace backendkit
