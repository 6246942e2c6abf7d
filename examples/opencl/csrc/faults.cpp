#include "faults.h"

#include <stdexcept>
#include <string>

namespace ocl {

cl_mem Faults::memory(cl_context context, bool in_graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (in_graph) in_graphs_ = true;
  if (memory_ != nullptr) return memory_;
  Fault none{};
  cl_int status = CL_SUCCESS;
  memory_ = api().clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none,
                                 &none, &status);
  check("clCreateBuffer", status);
  return memory_;
}

void Faults::raise(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Fault fault{};
  check("clEnqueueReadBuffer", api().clEnqueueReadBuffer(queue, memory_, CL_TRUE, 0, sizeof fault,
                                                         &fault, 0, nullptr, nullptr));
  if (fault.found == 0) return;
  const Fault none{};
  check("clEnqueueWriteBuffer", api().clEnqueueWriteBuffer(queue, memory_, CL_TRUE, 0, sizeof none,
                                                           &none, 0, nullptr, nullptr));
  throw std::out_of_range(std::string(reinterpret_cast<const char*>(fault.op)) + ": index " +
                          std::to_string(fault.index) + " is out of bounds for dimension " +
                          std::to_string(fault.dim) + " with size " + std::to_string(fault.size));
}

}  // namespace ocl
