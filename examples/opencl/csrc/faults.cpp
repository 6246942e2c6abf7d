#include "faults.h"

namespace ocl {

Faults::Faults(cl_context context) {
  Fault none{};
  cl_int status = CL_SUCCESS;
  memory_ = api().clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none,
                                 &none, &status);
  check("clCreateBuffer", status);
}

Faults::~Faults() { api().clReleaseMemObject(memory_); }

std::optional<std::string> Faults::take(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Fault fault{};
  check("clEnqueueReadBuffer", api().clEnqueueReadBuffer(queue, memory_, CL_TRUE, 0, sizeof fault,
                                                         &fault, 0, nullptr, nullptr));
  if (fault.found != kComplete) return std::nullopt;
  const Fault none{};
  check("clEnqueueWriteBuffer", api().clEnqueueWriteBuffer(queue, memory_, CL_TRUE, 0, sizeof none,
                                                           &none, 0, nullptr, nullptr));
  return std::string(reinterpret_cast<const char*>(fault.op)) + ": index " +
         std::to_string(fault.index) + " is out of bounds for dimension " +
         std::to_string(fault.dim) + " with size " + std::to_string(fault.size);
}

}  // namespace ocl
