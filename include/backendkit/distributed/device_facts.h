// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <backendkit/device/driver_collectives.h>

namespace backendkit {

/// What a process group must know of a Runtime. The file of the glue with process groups does not
/// instantiate the Runtime again, which would take half of its compile time; PyTorch's device guard
/// does the rest.
struct DeviceFacts {
  bool has_streams;
  bool has_events;
  bool has_elapsed_ms;
  bool has_pinned_memory;
  bool (*host_accessible)(int device);
  bool (*in_use)();  ///< whether this process uses the driver
  bool (*forked)();  ///< whether the parent of this process used the driver
  void (*check_not_forked)();
  /// The vendor's kernel, as `copy_by_kernel` calls it.
  bool (*copy_elements)(const at::Tensor& src, const at::Tensor& dst);
  StreamHandle (*handle)(c10::DeviceIndex device, c10::StreamId stream);
  const DriverCollectives* collectives;  ///< null if the Runtime has none
};

/// The facts of the backend; the glue defines this.
const DeviceFacts& device_facts();

}  // namespace backendkit
