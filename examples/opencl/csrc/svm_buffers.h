#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "opencl.h"

namespace ocl {

/// Shared virtual memory as buffers, for libraries that take a `cl_mem` and no address. OpenCL 2.0
/// makes a buffer of such memory without a copy. Any thread may call any function.
class SvmBuffers {
 public:
  void add(void* begin, std::size_t bytes);

  /// Before the memory is freed.
  void remove(void* begin);

  /// The buffer in which an address is, and the offset there, in bytes.
  std::pair<cl_mem, std::size_t> at(cl_context context, const void* address);

 private:
  struct Block {
    std::size_t bytes;
    cl_mem buffer;  ///< null until it is needed
  };

  std::mutex mutex_;
  std::map<const char*, Block> blocks_;
};

}  // namespace ocl
