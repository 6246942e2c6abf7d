#pragma once

#include <cstdint>

#include "opencl.h"

namespace ocl {

/// Where the kernels of a queue report an index that is out of range. A kernel cannot raise an
/// error: it leaves such an element alone and goes on, and whoever waits for the queue gets the
/// error. Checking indices before the launch would wait for the device at each call.
///
/// Not thread-safe.
class Faults {
 public:
  /// `Fault` of kernels/index.cl.
  struct Fault {
    std::int32_t found, unused;
    std::int64_t op, index, dim, size;
  };

  /// The memory for a kernel that is about to be queued. Its `op` is an operator's name, the
  /// address of a text that lives as long as the process.
  cl_mem memory(cl_context context);

  /// Throws std::out_of_range if a kernel has reported something, and forgets it. Waits for the
  /// queue, if it has had such a kernel since the last call.
  void raise(cl_command_queue queue);

 private:
  cl_mem memory_ = nullptr;  ///< as long as the process, like the queue
  bool used_ = false;
};

}  // namespace ocl
