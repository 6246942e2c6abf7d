#include "svm_buffers.h"

#include <iterator>
#include <stdexcept>

namespace ocl {

void SvmBuffers::add(void* begin, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.emplace(static_cast<const char*>(begin), Block{bytes, nullptr});
}

void SvmBuffers::remove(void* begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto node = blocks_.extract(static_cast<const char*>(begin));
  if (node.empty() || node.mapped().buffer == nullptr) return;
  check("clReleaseMemObject", api().clReleaseMemObject(node.mapped().buffer));
}

std::pair<cl_mem, std::size_t> SvmBuffers::at(cl_context context, const void* address) {
  const auto* const place = static_cast<const char*>(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = blocks_.upper_bound(place);
  if (after == blocks_.begin()) throw std::out_of_range("no memory of the device is there");
  auto& [begin, block] = *std::prev(after);
  if (block.buffer == nullptr) {
    cl_int status = CL_SUCCESS;
    block.buffer = api().clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                        block.bytes, const_cast<char*>(begin), &status);
    check("clCreateBuffer", status);
  }
  return {block.buffer, static_cast<std::size_t>(place - begin)};
}

}  // namespace ocl
