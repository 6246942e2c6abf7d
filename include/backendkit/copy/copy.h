// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/quantized/QTensorImpl.h>

#include <backendkit/copy/element_runs.h>
#include <backendkit/copy/transfers.h>
#include <backendkit/kernel/timed_work.h>
#include <backendkit/pinned_allocator.h>

namespace backendkit {

/// Copies between tensors, at least one of which is on the device: any dtypes, shapes that
/// broadcast, any strides, conjugated and negated views, on one device or two, including those of
/// other backends. If the bytes can be copied as they are, this takes one driver copy. Otherwise
/// the vendor's `copy_elements` copies within a device, or else PyTorch's CPU copy does the
/// conversion: the bytes that `src` spans are copied to the host, and the elements of `dst` are
/// copied from there.
template <class Runtime>
class Copier {
 public:
  /// aten::_copy_from of quantized tensors: `dst` receives the bytes and the scale of `self`.
  static at::Tensor copy_quantized(const at::Tensor& self, const at::Tensor& dst, bool) {
    TORCH_CHECK(self.is_quantized() && dst.is_quantized() && self.dtype() == dst.dtype(),
                "copy_: cannot copy a tensor of dtype ", self.dtype(), " into one of ",
                dst.dtype());
    const auto quantized = [](const at::Tensor& tensor) {
      return static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
    };
    copy(plain_tensor(self), plain_tensor(dst), false);
    quantized(dst)->set_quantizer_(quantized(self)->quantizer());
    return dst;
  }

  /// aten::_copy_from(self, dst): the kernel that PyTorch's copy_, to and clone call. Within one
  /// device the copy is queued on the current stream, and may still be running when this returns. A
  /// copy from or to the host has completed, unless `non_blocking` is true and the host memory is
  /// pinned.
  static at::Tensor copy(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
    TORCH_CHECK(self.defined() && dst.defined(), "copy_: a tensor is undefined");
    at::assert_no_internal_overlap(dst);
    const at::Tensor src = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
    if (dst.numel() == 0 || same_view(src, dst)) return dst;
    // Another accelerator's own copy handles its memory.
    if (!on_device(src) && !src.is_cpu()) return copy(src.cpu(), dst, false);
    if (!on_device(dst) && !dst.is_cpu()) return dst.copy_(src.cpu());
    check_storage(self);
    check_storage(dst);
    at::assert_no_partial_overlap(dst, self);
    TimedWork work;
    work.begin(on_device(src) ? src.device() : dst.device(), KernelTimes::on());
    if (bytes_can_go(src, dst)) {
      const bool wait = !non_blocking || !record_pinned_use(src, dst);
      move(dst.mutable_data_ptr(), dst.storage(), src.const_data_ptr(), src.storage(), dst.nbytes(),
           wait);
    } else if (!by_kernel(src, dst)) {
      through_host(src, dst);
    }
    if (const auto taken = work.end()) {
      CopyCounts::of(way_of(src, dst)).add(*taken, static_cast<std::int64_t>(dst.nbytes()));
    }
    return dst;
  }

 private:
  static CopyWay way_of(const at::Tensor& src, const at::Tensor& dst) {
    if (!on_device(src)) return CopyWay::kToDevice;
    if (!on_device(dst)) return CopyWay::kToHost;
    return src.device() == dst.device() ? CopyWay::kWithinDevice : CopyWay::kBetweenDevices;
  }

  static bool on_device(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

  static bool same_bits(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() &&
           a.is_neg() == b.is_neg();
  }

  static bool same_view(const at::Tensor& a, const at::Tensor& b) {
    return same_bits(a, b) && a.device() == b.device() && a.strides() == b.strides() &&
           a.const_data_ptr() == b.const_data_ptr();
  }

  static bool bytes_can_go(const at::Tensor& src, const at::Tensor& dst) {
    return same_bits(src, dst) && src.is_non_overlapping_and_dense() &&
           dst.is_non_overlapping_and_dense() && src.strides() == dst.strides();
  }

  /// If the host's side of a copy is pinned memory, makes its allocator keep that memory until the
  /// current stream's work has completed. Returns whether it is pinned.
  static bool record_pinned_use([[maybe_unused]] const at::Tensor& src,
                                [[maybe_unused]] const at::Tensor& dst) {
    if constexpr (HasPinnedMemory<Runtime>) {
      if (on_device(src) == on_device(dst)) return false;
      const at::Tensor& host = on_device(src) ? dst : src;
      const c10::DeviceIndex device = (on_device(src) ? src : dst).device().index();
      return PinnedAllocator<Runtime>::record_stream(host.storage().data_ptr(),
                                                     Streams<Runtime>::current(device), device);
    } else {
      return false;
    }
  }

  /// Copies bytes of storages from any device to any device; between two devices through the host,
  /// unless the driver can copy directly. Unless `wait` is false, the caller may use the host's
  /// memory again when this returns.
  static void move(void* dst, const c10::Storage& dst_storage, const void* src,
                   const c10::Storage& src_storage, std::size_t bytes, bool wait = true) {
    const c10::Device to = dst_storage.device();
    const c10::Device from = src_storage.device();
    const bool to_device = to.type() == kDeviceType;
    const bool from_device = from.type() == kDeviceType;
    if (to_device && from_device && to != from) {
      if constexpr (HasPeers<Runtime>) {
        if (Driver<Runtime>::can_access_peer(from.index(), to.index())) {
          Transfers<Runtime>::begin_peer(dst, dst_storage, src, src_storage, bytes);
          return;
        }
      }
      const c10::Storage host = host_storage(bytes);
      move(host.mutable_data(), host, src, src_storage, bytes);
      move(dst, dst_storage, host.data(), host, bytes);
      return;
    }
    const CopyKind kind = !to_device     ? CopyKind::kDeviceToHost
                          : !from_device ? CopyKind::kHostToDevice
                                         : CopyKind::kDeviceToDevice;
    const c10::Storage* const host = !wait || (to_device && from_device) ? nullptr
                                     : to_device                         ? &src_storage
                                                                         : &dst_storage;
    Transfers<Runtime> transfers;
    transfers.begin(dst, src, bytes, kind, (to_device ? to : from).index(), host);
    transfers.finish();
  }

  /// A CPU tensor over memory of its own, with the strides and bits of `tensor`, and with its
  /// values if `filled`.
  static at::Tensor on_host(const at::Tensor& tensor, bool filled) {
    at::Tensor host =
        at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    if (filled) {
      move(host.mutable_data_ptr(), host.storage(), tensor.const_data_ptr(), tensor.storage(),
           span_of(tensor));
    }
    host._set_conj(tensor.is_conj());
    host._set_neg(tensor.is_neg());
    return host;
  }

  /// Has the vendor's kernel copy within one device. Returns whether it did.
  static bool by_kernel(const at::Tensor& src, const at::Tensor& dst) {
    if constexpr (HasCopyElements<Runtime>) {
      if (src.device() != dst.device() || src.is_conj() != dst.is_conj() ||
          src.is_neg() != dst.is_neg()) {
        return false;
      }
      const at::Tensor from = plain_tensor(src);
      const at::Tensor to = plain_tensor(dst);
      if (!share_bytes(from, to)) return copy_elements<Runtime>(from, to);
      const at::Tensor between = plain_empty<Runtime>(from, dst.device().index());
      return copy_elements<Runtime>(from, between) && copy_elements<Runtime>(between, to);
    } else {
      return false;
    }
  }

  /// Whether the memory from the first to the last element of one tensor meets that of another.
  static bool share_bytes(const at::Tensor& a, const at::Tensor& b) {
    if (!a.storage().is_alias_of(b.storage())) return false;
    const auto [a_begin, a_end] = bytes_of(a);
    const auto [b_begin, b_end] = bytes_of(b);
    return a_begin < b_end && b_begin < a_end;
  }

  /// A tensor whose elements the host wants, without wide gaps between them if the vendor's kernel
  /// can copy them out.
  static at::Tensor without_gaps(const at::Tensor& src) {
    const std::size_t bytes = static_cast<std::size_t>(src.numel()) * src.itemsize();
    const c10::DeviceIndex device = src.device().index();
    if (!HasCopyElements<Runtime> || span_of(src) < 2 * bytes ||
        Driver<Runtime>::host_accessible(device)) {
      return src;
    }
    const at::Tensor dense = plain_empty<Runtime>(src, device);
    if (!copy_elements<Runtime>(plain_tensor(src), dense)) return src;
    dense._set_conj(src.is_conj());
    dense._set_neg(src.is_neg());
    return dense;
  }

  static void through_host(const at::Tensor& src, const at::Tensor& dst) {
    const at::Tensor host_src = on_device(src) ? on_host(without_gaps(src), true) : src;
    if (!on_device(dst)) {
      dst.copy_(host_src);
      return;
    }
    const at::Tensor host_dst = on_host(dst, false);
    host_dst.copy_(host_src);
    write_elements<Runtime>(dst.storage(), bytes_of(dst).first, host_dst);
  }
};

}  // namespace backendkit
