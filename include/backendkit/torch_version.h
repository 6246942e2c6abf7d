// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between PyTorch releases; no other header asks for a version.
//
// A function of the guard and the hooks that older releases lack has no `override`: where PyTorch
// declares it virtual it overrides all the same. A function that older releases declare `noexcept`
// is `noexcept` for all, unless a constant below says otherwise.

#include <utility>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>

#if __has_include(<ATen/core/GeneratorForPrivateuseone.h>)
#include <ATen/core/GeneratorForPrivateuseone.h>
#endif

#include <backendkit/memory/memory_statistics.h>

/// Whether the PyTorch compiled for is of release MAJOR.MINOR or newer.
#define BACKENDKIT_TORCH_AT_LEAST(MAJOR, MINOR) \
  (TORCH_VERSION_MAJOR > (MAJOR) ||             \
   (TORCH_VERSION_MAJOR == (MAJOR) && TORCH_VERSION_MINOR >= (MINOR)))

namespace backendkit {

#if BACKENDKIT_TORCH_AT_LEAST(2, 9)

/// What torch.accelerator asks for memory.
using DeviceAllocatorBase = c10::DeviceAllocator;
using DeviceStatistics = c10::CachingDeviceAllocator::DeviceStats;

/// Statistics as torch.accelerator has them.
inline DeviceStatistics device_statistics(const MemoryStatistics& ours) {
  DeviceStatistics theirs;
  const auto fill = [](c10::CachingDeviceAllocator::StatArray& to,
                       const MemoryStatistics::Figures& from) {
    auto place = to.begin();
    for (const MemoryFigure& figure : from) {
      place->current = figure.current;
      place->peak = figure.peak;
      place->allocated = figure.allocated;
      place->freed = figure.freed;
      ++place;
    }
  };
  fill(theirs.allocation, ours.allocation);
  fill(theirs.segment, ours.segment);
  fill(theirs.active, ours.active);
  fill(theirs.inactive_split, ours.inactive_split);
  fill(theirs.allocated_bytes, ours.allocated_bytes);
  fill(theirs.reserved_bytes, ours.reserved_bytes);
  fill(theirs.active_bytes, ours.active_bytes);
  fill(theirs.inactive_split_bytes, ours.inactive_split_bytes);
  fill(theirs.requested_bytes, ours.requested_bytes);
  theirs.num_alloc_retries = ours.num_alloc_retries;
  theirs.num_ooms = ours.num_ooms;
  theirs.num_sync_all_streams = ours.num_sync_all_streams;
  theirs.num_device_alloc = ours.num_device_alloc;
  theirs.num_device_free = ours.num_device_free;
  return theirs;
}

#else

using DeviceAllocatorBase = c10::Allocator;
using DeviceStatistics = MemoryStatistics;

inline DeviceStatistics device_statistics(const MemoryStatistics& ours) {
  return ours;
}

#endif

#if BACKENDKIT_TORCH_AT_LEAST(2, 9)

/// What torch.accelerator asks for pinned memory of the host.
using HostAllocatorBase = at::HostAllocator;
using HostStatistics = at::HostStats;

/// The figures have had other names before.
template <class Statistics = HostStatistics>
Statistics host_statistics(const MemoryStatistics& ours) {
  Statistics theirs;
  const auto fill = [](auto& to, const MemoryStatistics::Figures& from) {
    to.current = from.all().current;
    to.peak = from.all().peak;
    to.allocated = from.all().allocated;
    to.freed = from.all().freed;
  };
  if constexpr (requires { theirs.active_requests; }) {
    fill(theirs.active_requests, ours.active);
    fill(theirs.active_bytes, ours.active_bytes);
    fill(theirs.allocations, ours.segment);
    fill(theirs.allocated_bytes, ours.reserved_bytes);
  } else {
    fill(theirs.allocation, ours.allocation);
    fill(theirs.segment, ours.segment);
    fill(theirs.allocated_bytes, ours.allocated_bytes);
    fill(theirs.reserved_bytes, ours.reserved_bytes);
  }
  theirs.num_host_alloc = ours.num_device_alloc;
  theirs.num_host_free = ours.num_device_free;
  return theirs;
}

inline void register_host_allocator(HostAllocatorBase* allocator, c10::DeviceType device) {
  at::setHostAllocator(device, allocator);
}

#else

using HostAllocatorBase = c10::Allocator;
using HostStatistics = MemoryStatistics;

inline HostStatistics host_statistics(const MemoryStatistics& ours) {
  return ours;
}

inline void register_host_allocator(HostAllocatorBase*, c10::DeviceType) {}

#endif

#if BACKENDKIT_TORCH_AT_LEAST(2, 10)
/// What torch.accelerator.get_device_capability tells of a device: unless changed, all dtypes.
using DeviceCapability = c10::DeviceCapability;
#else
struct DeviceCapability {};
#endif

/// Whether PyTorch lets the guard throw where it asks for a stream of a device.
constexpr bool kStreamsMayThrow =
    !noexcept(std::declval<const c10::impl::DeviceGuardImplInterface&>().getStream(
        std::declval<c10::Device>()));

/// Whether PyTorch checks the parts of a sparse tensor on any device, and not on its own alone.
constexpr bool kChecksAnySparse = BACKENDKIT_TORCH_AT_LEAST(2, 8);

/// c10::MempoolId_t, which older releases have elsewhere; {0, 0} is all memory.
using MempoolId = std::pair<unsigned long long, unsigned long long>;

/// Makes `make` what `torch.Generator(device)` calls, in releases that do not ask the hooks for it.
inline void register_generator_maker([[maybe_unused]] at::Generator (*make)(c10::DeviceIndex)) {
#if !BACKENDKIT_TORCH_AT_LEAST(2, 7)
  static const at::_GeneratorRegister registered(make);
#endif
}

}  // namespace backendkit
