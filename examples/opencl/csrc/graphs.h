#pragma once

#include "devices.h"

namespace ocl {

/// The functions of a platform's cl_khr_command_buffer, the extension that records commands.
struct CommandBuffers {
  clCreateCommandBufferKHR_fn create;
  clFinalizeCommandBufferKHR_fn finalize;
  clReleaseCommandBufferKHR_fn release;
  clEnqueueCommandBufferKHR_fn enqueue;
  clCommandNDRangeKernelKHR_fn add_kernel;
};

/// Those of a device. Throws if its driver has none.
const CommandBuffers& command_buffers_of(const Device& device);

}  // namespace ocl
