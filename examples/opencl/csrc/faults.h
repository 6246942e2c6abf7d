#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "opencl.h"

namespace ocl {

/// Where the kernels of a queue, or of a graph, report an index that is out of range. A kernel
/// cannot raise an error: it leaves such an element alone and goes on, and whoever waits for the
/// queue gets the error. Checking indices before the launch would wait for the device at each call.
/// Any thread may call any function.
class Faults {
 public:
  explicit Faults(cl_context context);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// The memory for a kernel. The kernel's `op` is an operator's name, the address of a text that
  /// lives as long as the process.
  cl_mem memory() const { return memory_; }

  /// What a kernel has reported, which is forgotten then. Waits for the queue.
  std::optional<std::string> take(cl_command_queue queue);

 private:
  /// `Fault` of kernels/index.cl.
  struct Fault {
    std::int32_t found, unused;
    std::int64_t op, index, dim, size;
  };
  static constexpr std::int32_t kComplete = 2;  ///< `found` once the rest is there

  std::mutex mutex_;
  cl_mem memory_ = nullptr;
};

}  // namespace ocl
