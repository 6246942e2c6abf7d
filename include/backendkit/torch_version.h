// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that differs between PyTorch releases; no other header checks the version.
//
// A function of the guard and the hooks that older releases lack has no `override`; it overrides
// PyTorch's wherever that is virtual. A function that older releases declare `noexcept` is
// `noexcept` for all, unless a constant below says otherwise.

#include <memory>
#include <string>
#include <utility>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#endif

#if __has_include(<ATen/core/GeneratorForPrivateuseone.h>)
#include <ATen/core/GeneratorForPrivateuseone.h>
#endif

#include <backendkit/memory/memory_statistics.h>

/// Whether the PyTorch to compile for is release MAJOR.MINOR or newer.
#define BACKENDKIT_TORCH_AT_LEAST(MAJOR, MINOR) \
  (TORCH_VERSION_MAJOR > (MAJOR) ||             \
   (TORCH_VERSION_MAJOR == (MAJOR) && TORCH_VERSION_MINOR >= (MINOR)))

namespace backendkit {

#if BACKENDKIT_TORCH_AT_LEAST(2, 9)

/// The class through which torch.accelerator controls memory.
using DeviceAllocatorBase = c10::DeviceAllocator;
using DeviceStatistics = c10::CachingDeviceAllocator::DeviceStats;

/// Statistics in the form of torch.accelerator.
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

/// The class through which torch.accelerator controls pinned host memory.
using HostAllocatorBase = at::HostAllocator;
using HostStatistics = at::HostStats;

/// The statistics had other names in earlier releases.
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
/// The result of torch.accelerator.get_device_capability: by default, all dtypes.
using DeviceCapability = c10::DeviceCapability;
#else
struct DeviceCapability {};
#endif

/// Whether PyTorch lets the guard throw when it asks for a device's stream.
constexpr bool kStreamsMayThrow =
    !noexcept(std::declval<const c10::impl::DeviceGuardImplInterface&>().getStream(
        std::declval<c10::Device>()));

/// Whether PyTorch checks the parts of a sparse tensor on any device, not only on its own.
constexpr bool kChecksAnySparse = BACKENDKIT_TORCH_AT_LEAST(2, 8);

/// c10::MempoolId_t, which older releases declare elsewhere; {0, 0} is all memory.
using MempoolId = std::pair<unsigned long long, unsigned long long>;

#if BACKENDKIT_TORCH_AT_LEAST(2, 12)

/// The class behind torch.accelerator.Graph.
using GraphImplBase = at::GraphImplInterface;
using GraphArguments = at::GraphImplArgs;
using GraphMode = at::GraphCaptureMode;
constexpr bool kHasGraphs = true;

inline bool keep_graph(const GraphArguments& arguments) {
  return arguments.keep_graph;
}

template <class Graph>
void register_graph() {
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(c10::DeviceType::PrivateUse1, false),
      [](at::GraphImplArgs arguments) { return std::make_unique<Graph>(arguments); });
}

#else

/// Stands for the class that newer releases have; nothing makes graphs here.
struct GraphImplBase {
  virtual ~GraphImplBase() = default;
  virtual void capture_begin(MempoolId, int) = 0;
  virtual void capture_end() = 0;
  virtual void instantiate() = 0;
  virtual void replay() = 0;
  virtual void reset() = 0;
  virtual MempoolId pool() const = 0;
  virtual void enable_debug_mode() = 0;
  virtual void debug_dump(const std::string& path) = 0;
};
using GraphArguments = bool;
using GraphMode = int;
constexpr bool kHasGraphs = false;

inline bool keep_graph(GraphArguments keep) {
  return keep;
}

template <class Graph>
void register_graph() {}

#endif

/// Makes `torch.Generator(device)` call `make`, in releases that do not ask the hooks.
inline void register_generator_maker([[maybe_unused]] at::Generator (*make)(c10::DeviceIndex)) {
#if !BACKENDKIT_TORCH_AT_LEAST(2, 7)
  static const at::_GeneratorRegister registered(make);
#endif
}

}  // namespace backendkit
