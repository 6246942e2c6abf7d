// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>
#include <c10/util/strides.h>

#include <backendkit/allocator.h>
#include <backendkit/copy/transfers.h>

namespace backendkit {

/// The number of bytes from a tensor's first element to the end of its last. Strides are never
/// negative.
inline std::size_t span_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<std::size_t>(last + 1) * tensor.itemsize();
}

/// A storage in host memory.
inline c10::Storage host_storage(std::size_t bytes) {
  return {c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes), c10::GetCPUAllocator(),
          false};
}

/// The range of bytes in its storage from a tensor's first element to the end of its last.
inline std::pair<std::size_t, std::size_t> bytes_of(const at::Tensor& tensor) {
  const auto begin = static_cast<std::size_t>(tensor.storage_offset()) * tensor.itemsize();
  return {begin, begin + span_of(tensor)};
}

/// A tensor over a storage, from its byte `first` on: the sizes and the dtype of `like`, but
/// integers instead of quantized numbers, and nothing conjugated or negated.
inline at::Tensor plain_tensor(const c10::Storage& storage, std::size_t first,
                               const at::Tensor& like, c10::IntArrayRef strides) {
  const c10::DispatchKey key = storage.device().type() == kDeviceType
                                   ? c10::DispatchKey::PrivateUse1
                                   : c10::DispatchKey::CPU;
  const auto type = c10::scalarTypeToTypeMeta(c10::toUnderlying(like.scalar_type()));
  at::Tensor plain = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage),
                                                              c10::DispatchKeySet(key), type);
  plain.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), strides, static_cast<std::int64_t>(first / type.itemsize()));
  return plain;
}

inline at::Tensor plain_tensor(const at::Tensor& tensor) {
  return plain_tensor(tensor.storage(), bytes_of(tensor).first, tensor, tensor.strides());
}

/// A contiguous tensor on a device, with the sizes and the dtype of `like` as `plain_tensor` has
/// them. Its memory belongs to the current stream.
template <class Runtime>
at::Tensor plain_empty(const at::Tensor& like, c10::DeviceIndex device) {
  const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
  const std::size_t bytes = static_cast<std::size_t>(like.numel()) * like.itemsize();
  const c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                             &Allocator<Runtime>::instance(), true);
  return plain_tensor(storage, 0, like, c10::contiguous_strides(like.sizes()));
}

/// Has the vendor's kernel copy elements within one device, from and to tensors of `plain_tensor`
/// that are not in the same memory. Returns false if it has none for them, and does nothing then.
template <class Runtime>
bool copy_elements(const at::Tensor& src, const at::Tensor& dst) {
  const c10::DeviceGuard guard(dst.device());
  return Driver<Runtime>::copy_elements(src, dst, dst.device().index());
}

/// Has the vendor's kernel, if there is one, copy elements on the current stream, from one tensor
/// to another of the same sizes, dtype and device, in other memory. Returns whether it does; the
/// host does not wait.
template <class Runtime>
bool copy_by_kernel(const at::Tensor& src, const at::Tensor& dst) {
  if constexpr (HasCopyElements<Runtime>) {
    if (at::has_internal_overlap(dst) == at::MemOverlap::Yes) return false;
    return copy_elements<Runtime>(plain_tensor(src), plain_tensor(dst));
  } else {
    return false;
  }
}

/// Throws if a tensor's storage has been made too small for its elements.
inline void check_storage(const at::Tensor& tensor) {
  const std::size_t needed = bytes_of(tensor).second;
  const std::size_t bytes = tensor.storage().nbytes();
  TORCH_CHECK(tensor.numel() == 0 || needed <= bytes, "a tensor of sizes ", tensor.sizes(),
              " needs ", needed, " bytes, but its storage has only ", bytes);
}

/// The positions of a tensor's elements: runs of bytes without gaps, all of one length.
class ElementRuns {
 public:
  explicit ElementRuns(const at::Tensor& tensor)
      : length_(static_cast<std::int64_t>(tensor.itemsize())) {
    if (tensor.numel() == 0) {
      count_ = 0;
      return;
    }
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      if (tensor.size(i) > 1 && tensor.stride(i) > 0) {
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

  /// Whether copying the runs one by one costs at most about as much as copying the tensor with its
  /// gaps.
  bool few() const { return count_ <= 256 || length_ >= 1 << 16; }

  /// The number of bytes of all elements, each counted once.
  std::size_t bytes() const { return static_cast<std::size_t>(length_ * count_); }

  /// Calls `visit(begin, end)` for each run, in bytes from the tensor's first element.
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
  c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 6> outer_;  ///< stride in bytes, size
};

/// Writes the elements of a strided host tensor by the vendor's kernel, which copies them from a
/// dense tensor. Returns the bytes that went to the device, 0 if there is no kernel for them.
template <class Runtime>
std::size_t write_by_kernel(const c10::Storage& target, std::size_t first, const at::Tensor& host) {
  if constexpr (HasCopyElements<Runtime>) {
    if (first % host.itemsize() != 0) return 0;
    const at::Tensor dense = plain_tensor(host).contiguous();
    const at::Tensor there = plain_empty<Runtime>(host, target.device().index());
    Transfers<Runtime> transfers;
    transfers.begin(there.mutable_data_ptr(), dense.const_data_ptr(), dense.nbytes(),
                    CopyKind::kHostToDevice, target.device().index(), &dense.storage());
    transfers.finish();
    const at::Tensor dst = plain_tensor(target, first, host, host.strides());
    return copy_elements<Runtime>(there, dst) ? dense.nbytes() : 0;
  } else {
    return 0;
  }
}

/// Writes the elements of a strided host tensor to a storage on the device, from its byte `first`
/// on and with the same strides. The gaps between them belong to others and keep their contents. If
/// there are too many runs to copy one by one, and the vendor has no kernel for them, the gaps are
/// read and written back while no copy is running or starts; only the writes of kernels that
/// another thread starts meanwhile are lost. The copy has completed when this returns, except for
/// the kernel's part; returns the bytes copied.
template <class Runtime>
std::size_t write_elements(const c10::Storage& target, std::size_t first, const at::Tensor& host) {
  const c10::DeviceIndex device = target.device().index();
  char* const there = static_cast<char*>(target.mutable_data()) + first;
  const auto* const here = static_cast<const char*>(host.const_data_ptr());
  const ElementRuns runs(host);
  Devices<Runtime>::use();
  Streams<Runtime>::cannot_record(device, "a copy from the host");
  if (Driver<Runtime>::host_accessible(device)) {
    Streams<Runtime>::synchronize_current(device);
    runs.each([&](std::size_t begin, std::size_t end) {
      std::memcpy(there + begin, here + begin, end - begin);
    });
    return runs.bytes();
  }
  if (runs.few()) {
    Transfers<Runtime> transfers;
    runs.each([&](std::size_t begin, std::size_t end) {
      transfers.begin(there + begin, here + begin, end - begin, CopyKind::kHostToDevice, device,
                      &host.storage());
    });
    transfers.finish();
    return runs.bytes();
  }
  if (const std::size_t sent = write_by_kernel<Runtime>(target, first, host)) return sent;
  const std::size_t bytes = span_of(host);
  const c10::Storage storage = host_storage(bytes);
  auto* const whole = static_cast<char*>(storage.mutable_data());
  const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
  const auto copy = [&](void* dst, const void* src, CopyKind kind) {
    try {
      Driver<Runtime>::copy(dst, src, bytes, kind, current_stream<Runtime>(device), device);
      Streams<Runtime>::synchronize_current(device);
    } catch (...) {
      settle<Runtime>(device, {storage});
      throw;
    }
  };
  Devices<Runtime>::synchronize(device);  // also here, to hold the lock for less time
  const std::lock_guard<FairSharedMutex> lock(writes_to(device));
  Devices<Runtime>::synchronize(device);
  copy(whole, there, CopyKind::kDeviceToHost);
  runs.each([&](std::size_t begin, std::size_t end) {
    std::memcpy(whole + begin, here + begin, end - begin);
  });
  copy(there, whole, CopyKind::kHostToDevice);
  return 2 * bytes;
}

}  // namespace backendkit
