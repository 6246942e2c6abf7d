// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>

#include <backendkit/copy/element_runs.h>
#include <backendkit/copy/transfers.h>
#include <backendkit/hooks.h>
#include <backendkit/memory/lending_allocator.h>

namespace backendkit {

/// Ranges of bytes, [begin, end).
class Intervals {
 public:
  void add(std::size_t begin, std::size_t end) {
    if (begin < end) all_.emplace_back(begin, end);
  }

  bool empty() const { return all_.empty(); }

  /// Calls `visit(begin, end)` for each range of their union, in order; ranges that overlap or
  /// touch are merged.
  template <class Visit>
  void each(Visit&& visit) {
    std::sort(all_.begin(), all_.end());
    for (std::size_t i = 0; i < all_.size();) {
      auto [begin, end] = all_[i];
      while (++i < all_.size() && all_[i].first <= end) end = std::max(end, all_[i].second);
      visit(begin, end);
    }
  }

 private:
  c10::SmallVector<std::pair<std::size_t, std::size_t>, 4> all_;
};

/// The memory of one operator that the CPU computes for the device: each storage on one side has a
/// counterpart on the other. If the host can access the device's memory, both are the same bytes.
/// Otherwise the bytes that tensors span are copied, each once, so that tensors that share memory
/// on one side share it on the other.
template <class Runtime>
class HostMemory {
 public:
  /// What an operator does with a tensor's bytes.
  struct Use {
    bool read;
    bool written;
  };

  explicit HostMemory(c10::Device device) : device_(device) {}

  /// Adds a strided device tensor that the operator receives. If it is not read, its storage may be
  /// too small, because the operator may be about to resize it.
  void note(const at::Tensor& tensor, Use use) {
    if (use.read) check_storage(tensor);
    if (use.written) tensor.storage().mutable_data();  // memory shared until written is copied now
    Pair& pair = pair_of(&Pair::device, tensor.storage());
    const auto [begin, end] = bytes_of(tensor);
    pair.begin = std::min(pair.begin, begin / kAlignment * kAlignment);
    if (begin < end) pair.end = std::max(pair.end, end);
    if (use.read) pair.in.add(begin, end);
    pair.written |= use.written;
  }

  /// Creates the host's side of the added storages.
  void bring() {
    if (shared(device_)) Streams<Runtime>::synchronize_current(device_.index());
    Transfers<Runtime> transfers;
    for (Pair& pair : pairs_) {
      const c10::Device where = pair.device.device();
      if (shared(where) && pair.end <= pair.device.nbytes()) {
        if (where != device_) Streams<Runtime>::synchronize_current(where.index());
        pair.begin = 0;
        pair.host = c10::Storage(c10::Storage::use_byte_size_t(), pair.device.nbytes(),
                                 lend(pair.device), c10::GetCPUAllocator(), true);
        pair.lent = pair.host.data();
      } else {
        pair.begin = std::min(pair.begin, pair.end);
        pair.host = c10::Storage(c10::Storage::use_byte_size_t(), pair.end - pair.begin,
                                 c10::GetCPUAllocator(), true);
        auto* const host = static_cast<char*>(pair.host.mutable_data());
        const auto* const there = static_cast<const char*>(pair.device.data());
        pair.in.each([&](std::size_t begin, std::size_t end) {
          move(transfers, host + (begin - pair.begin), there + begin, end - begin,
               CopyKind::kDeviceToHost, where, pair.host);
        });
      }
    }
    transfers.finish();
  }

  /// An added tensor on the host, with the same sizes, strides, bits and neighbours in memory.
  at::Tensor host(const at::Tensor& tensor) {
    const Pair& pair = pair_of(&Pair::device, tensor.storage());
    return like(tensor, pair.host, c10::DispatchKey::CPU,
                tensor.storage_offset() - elements(pair.begin, tensor));
  }

  /// Prepares to copy what the operator did to an added tensor to the device: its bytes and, if
  /// they have changed, its sizes, strides and bits. `send` makes the copies.
  void take_back(const at::Tensor& tensor, const at::Tensor& host) {
    Pair& pair = pair_of(&Pair::device, tensor.storage());
    const auto offset = host.storage_offset() + elements(pair.begin, host);
    write(pair, host);
    if (tensor.sizes() != host.sizes() || tensor.strides() != host.strides() ||
        tensor.storage_offset() != offset || tensor.is_conj() != host.is_conj() ||
        tensor.is_neg() != host.is_neg()) {
      reshaped_.push_back({tensor, host, offset});
    }
  }

  /// Adds a strided result on the host. `send` copies its bytes to the device, also if they are in
  /// a storage that already exists there.
  void note_result(const at::Tensor& result) {
    if (Pair* const pair = find(&Pair::host, result.storage()); pair != nullptr && !pair->fresh) {
      if (pair->written) {
        write(*pair, result);
      } else {
        need(*pair, result);
      }
      return;
    }
    Pair& pair = pair_of(&Pair::host, result.storage());
    const auto [begin, end] = bytes_of(result);
    pair.fresh = true;
    ++pair.users;
    // The device's storage starts at byte `begin` of the host's.
    pair.begin = std::min(pair.begin, begin / kAlignment * kAlignment);
    pair.end = std::max(pair.end, end);
    pair.out.add(begin, end);
  }

  /// Creates or updates the device's side: what was taken back and the added results. If there is
  /// not enough memory, tensors keep their previous sizes.
  void send() {
    Transfers<Runtime> transfers;
    for (Pair& pair : pairs_) {
      if (pair.fresh) {
        make(pair, transfers);
      } else {
        update(pair, transfers);
      }
    }
    transfers.finish();
    for (const auto& [tensor, host, offset] : reshaped_) {
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), offset);
      tensor._set_conj(host.is_conj());
      tensor._set_neg(host.is_neg());
    }
  }

  /// An added result on the device: results that share memory on the host share it there.
  at::Tensor on_device(const at::Tensor& result) {
    const Pair& pair = pair_of(&Pair::host, result.storage());
    const std::int64_t shift = elements(pair.begin, result);
    return like(result, pair.device, kDispatchKey,
                result.storage_offset() + (pair.fresh ? -shift : shift));
  }

  /// The bytes copied between device and host so far.
  std::size_t copied() const { return copied_; }

 private:
  static constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::PrivateUse1;
  static constexpr std::size_t kAlignment = 64;  // of the memory that PyTorch allocates on the CPU

  struct Pair {
    c10::Storage device;
    c10::Storage host;
    /// The range of bytes of the other side that the copied side holds.
    std::size_t begin = SIZE_MAX;
    std::size_t end = 0;
    std::size_t needed = 0;  ///< the size that the device's storage must have after the operator
    Intervals in;
    Intervals out;
    std::vector<at::Tensor> scattered;  ///< host tensors whose elements `write_elements` copies
    const void* lent = nullptr;         ///< the device's memory, if the host uses it directly
    bool written = false;               ///< the operator writes to it
    bool fresh = false;                 ///< created by the operator
    std::size_t users = 0;              ///< results that use a fresh storage
  };

  using Side = c10::Storage Pair::*;

  /// A device tensor, the host tensor that the operator changed, and its new storage offset.
  struct Reshaped {
    at::Tensor tensor;
    at::Tensor host;
    std::int64_t offset;
  };

  /// Whether the host can access a device's memory.
  static bool shared(c10::Device device) {
    return Driver<Runtime>::host_accessible(device.index());
  }

  Pair* find(Side side, const c10::Storage& storage) {
    for (Pair& pair : pairs_) {
      if ((pair.*side).unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return &pair;
    }
    return nullptr;
  }

  Pair& pair_of(Side side, const c10::Storage& storage) {
    if (Pair* const found = find(side, storage)) return *found;
    pairs_.emplace_back();
    pairs_.back().*side = storage;
    return pairs_.back();
  }

  /// Marks the elements of a host tensor to be copied to the device, without the gaps between them,
  /// which other threads may write meanwhile.
  static void write(Pair& pair, const at::Tensor& host) {
    const std::size_t first = bytes_of(host).first + pair.begin;
    need(pair, host);
    if (const ElementRuns runs(host); runs.few()) {
      runs.each(
          [&](std::size_t begin, std::size_t end) { pair.out.add(first + begin, first + end); });
    } else {
      pair.scattered.push_back(host);
    }
  }

  /// Makes sure that the device's storage will have room for a host tensor. A tensor without
  /// elements needs none, wherever in the storage it begins.
  static void need(Pair& pair, const at::Tensor& host) {
    const auto [begin, end] = bytes_of(host);
    if (begin < end) pair.needed = std::max(pair.needed, end + pair.begin);
  }

  static std::int64_t elements(std::size_t bytes, const at::Tensor& tensor) {
    return static_cast<std::int64_t>(bytes / tensor.itemsize());
  }

  /// A tensor over `storage`, otherwise like `tensor`.
  static at::Tensor like(const at::Tensor& tensor, const c10::Storage& storage,
                         c10::DispatchKey key, std::int64_t offset) {
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(key), tensor.dtype());
    c10::TensorImpl* impl = made.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), offset);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    made._set_conj(tensor.is_conj());
    made._set_neg(tensor.is_neg());
    return made;
  }

  /// The memory of a device's storage as host memory; keeps the storage alive.
  static c10::DataPtr lend(const c10::Storage& storage) {
    c10::StorageImpl* const held = c10::Storage(storage).unsafeReleaseStorageImpl();
    const auto release = [](void* context) {
      c10::intrusive_ptr<c10::StorageImpl>::reclaim(static_cast<c10::StorageImpl*>(context));
    };
    return {const_cast<void*>(storage.data()), held, release, c10::kCPU};
  }

  void move(Transfers<Runtime>& transfers, void* dst, const void* src, std::size_t bytes,
            CopyKind kind, c10::Device device, const c10::Storage& host) {
    transfers.begin(dst, src, bytes, kind, device.index(), &host);
    copied_ += bytes;
  }

  /// Takes the device's block that contains a host storage, if nothing but `holders` holds the
  /// storage, and leaves the storage empty. Returns no memory if there is no such block.
  c10::DataPtr take(const c10::Storage& host, std::size_t holders) {
    if (!shared(device_) || host.use_count() > holders) return {};
    c10::StorageImpl* const storage = host.unsafeGetStorageImpl();
    c10::DataPtr pointer = storage->set_data_ptr({nullptr, c10::Device(c10::kCPU)});
    c10::DataPtr block = LendingAllocator<Runtime>::take(pointer);
    if (block && block.device() == device_) return block;
    if (block) pointer = std::move(block);
    storage->set_data_ptr_noswap(std::move(pointer));
    return {};
  }

  void make(Pair& pair, Transfers<Runtime>& transfers) {
    const c10::DeviceGuard guard(device_);
    c10::Allocator* const allocator = &Allocator<Runtime>::instance();
    if (c10::DataPtr block = take(pair.host, pair.users + 1)) {
      pair.begin = 0;
      pair.device = c10::Storage(c10::Storage::use_byte_size_t(), pair.host.nbytes(),
                                 std::move(block), allocator, true);
      return;
    }
    pair.begin = std::min(pair.begin, pair.end);
    pair.device =
        c10::Storage(c10::Storage::use_byte_size_t(), pair.end - pair.begin, allocator, true);
    auto* const there = static_cast<char*>(pair.device.mutable_data());
    const auto* const host = static_cast<const char*>(pair.host.data());
    pair.out.each([&](std::size_t begin, std::size_t end) {
      move(transfers, there + (begin - pair.begin), host + begin, end - begin,
           CopyKind::kHostToDevice, device_, pair.host);
    });
  }

  void update(Pair& pair, Transfers<Runtime>& transfers) {
    const c10::Device where = pair.device.device();
    c10::StorageImpl* const storage = pair.device.unsafeGetStorageImpl();
    const bool moved = pair.host.data() != pair.lent;
    if (pair.lent != nullptr && !moved) return;
    if (pair.needed > storage->nbytes()) resize_storage<Runtime>(storage, pair.needed);
    if (pair.out.empty() && pair.scattered.empty()) return;  // lazy clones stay shared
    auto* const there = static_cast<char*>(pair.device.mutable_data());
    const auto* const host = static_cast<const char*>(pair.host.data());
    pair.out.each([&](std::size_t begin, std::size_t end) {
      move(transfers, there + begin, host + (begin - pair.begin), end - begin,
           CopyKind::kHostToDevice, where, pair.host);
    });
    if (pair.scattered.empty()) return;
    transfers.finish();  // one tensor's elements may be between those of another
    for (const at::Tensor& tensor : pair.scattered) {
      copied_ += write_elements<Runtime>(pair.device, pair.begin + bytes_of(tensor).first, tensor);
    }
  }

  const c10::Device device_;
  c10::SmallVector<Pair, 4> pairs_;
  std::vector<Reshaped> reshaped_;
  std::size_t copied_ = 0;
};

}  // namespace backendkit
