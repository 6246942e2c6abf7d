#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "opencl.h"

namespace ocl {

/// Where the kernels of a device report an index that is out of range. A kernel cannot raise an
/// error: it leaves such an element alone and goes on, and whoever waits for its queue gets the
/// error. Checking indices before the launch would wait for the device at each call. Any thread may
/// call any function.
class Faults {
 public:
  /// `Fault` of kernels/index.cl.
  struct Fault {
    std::int32_t found, unused;
    std::int64_t op, index, dim, size;
  };

  /// The memory for a kernel that is about to be queued, or recorded in a graph. Its `op` is an
  /// operator's name, the address of a text that lives as long as the process.
  cl_mem memory(cl_context context, bool in_graph);

  /// Whether there is a graph with such a kernel: then any queue may run it at any time.
  bool in_graphs() const { return in_graphs_; }

  /// Throws std::out_of_range if a kernel has reported something, and forgets it. Waits for the
  /// queue.
  void raise(cl_command_queue queue);

 private:
  std::mutex mutex_;
  cl_mem memory_ = nullptr;  ///< as long as the process, like the device
  std::atomic<bool> in_graphs_ = false;
};

}  // namespace ocl
