#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opencl.h"
#include "queue.h"
#include "svm_buffers.h"

namespace ocl {

/// A device, with a context that it shares with the other devices of its platform.
///
/// Environment variables, read once:
///   OPENCL_DEVICES  which devices to use and in what order, separated by commas: `gpu`, `cpu`, a
///                   part of a name, or a place in the list of all. Default: all, GPUs first
///   OPENCL_MEMORY   `svm` (pointers) or `buffer` (handles); default: svm where the device has it
///   OPENCL_BLAST    `clblast` or `own`: what multiplies matrices; see blas.h
struct Device {
  cl_device_id id = nullptr;
  cl_platform_id platform = nullptr;
  cl_context context = nullptr;
  std::string name;
  bool svm = false;              ///< whether its memory is shared virtual memory
  bool host_accessible = false;  ///< whether the host uses that memory at the same addresses
  bool priorities = false;       ///< whether its queues can have priorities
  bool is_cpu = false;
  bool blas = false;             ///< whether its products of matrices are CLBlast's
  std::size_t units = 1;         ///< that compute in parallel
  std::size_t memory = 0;        ///< in bytes
  std::size_t local_memory = 0;  ///< of a work group, in bytes
  int vector = 4;                ///< how many floats it computes at once: 4, 8 or 16
  std::atomic<std::size_t> used = 0;
  SvmBuffers svm_buffers;
  std::unique_ptr<Queue> default_queue;
  std::unique_ptr<Queue> pinning_queue;  ///< maps pinned memory, which waits for no stream
  std::mutex mutex;
  std::vector<std::unique_ptr<Queue>> queues;  ///< of the other streams
};

/// The number of devices, found without starting a driver in this process. 0 without any. Throws
/// if a driver crashes or OPENCL_DEVICES names no device.
int count_devices();

/// A device by its number. The first call starts the drivers.
Device& device_at(int index);

/// The queue of a stream of a device; null is the default stream.
inline Queue& queue_of(void* stream, int device) {
  return stream == nullptr ? *device_at(device).default_queue : *static_cast<Queue*>(stream);
}

/// A new queue. `priority` is as PyTorch has it: lower numbers come first.
std::unique_ptr<Queue> make_queue(Device& device, int index, int priority);

/// What a device says of itself, as text.
std::string text_of(cl_device_id id, cl_device_info what);

/// What a device says of itself, as a number.
template <class Number>
Number number_of(cl_device_id id, cl_device_info what) {
  Number number{};
  return api().clGetDeviceInfo(id, what, sizeof number, &number, nullptr) == CL_SUCCESS ? number
                                                                                        : Number{};
}

}  // namespace ocl
