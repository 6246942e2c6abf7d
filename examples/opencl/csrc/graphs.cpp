// Graphs: commands that a queue records, for torch.accelerator.Graph.

#include "graphs.h"

#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime.h"

namespace ocl {

namespace {

struct Graph {
  Recorded recorded;
  bool overlaps = false;    ///< whether it may be queued again before it has completed
  cl_event last = nullptr;  ///< of its last run, if they must not overlap
};

Graph& graph_of(backendkit::GraphHandle graph) { return *static_cast<Graph*>(graph); }

bool may_overlap(const Device& device) {
  const auto can = number_of<cl_device_command_buffer_capabilities_khr>(
      device.id, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
  return (can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
}

CommandBuffers find(const Device& device) {
  const auto function = [&](const char* name) {
    return api().clGetExtensionFunctionAddressForPlatform(device.platform, name);
  };
#define OCL_FIND(name) reinterpret_cast<name##_fn>(function(#name))
  return {OCL_FIND(clCreateCommandBufferKHR), OCL_FIND(clFinalizeCommandBufferKHR),
          OCL_FIND(clReleaseCommandBufferKHR), OCL_FIND(clEnqueueCommandBufferKHR),
          OCL_FIND(clCommandNDRangeKernelKHR)};
#undef OCL_FIND
}

}  // namespace

const CommandBuffers& command_buffers_of(const Device& device) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<cl_platform_id, CommandBuffers>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const bool there =
      text_of(device.id, CL_DEVICE_EXTENSIONS).find("cl_khr_command_buffer") != std::string::npos;
  if (there && !known->contains(device.platform)) known->emplace(device.platform, find(device));
  if (!there || known->at(device.platform).add_kernel == nullptr) {
    throw std::runtime_error("the driver of " + device.name +
                             " cannot record graphs: it has no cl_khr_command_buffer");
  }
  return known->at(device.platform);
}

void Runtime::begin_capture(backendkit::StreamHandle stream, int index) {
  const Device& device = device_at(index);
  const CommandBuffers& buffers = command_buffers_of(device);
  const cl_command_buffer_properties_khr overlap[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                      CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  queue_of(stream, index).begin_capture([&](cl_command_queue queue) {
    cl_int status = CL_SUCCESS;
    cl_command_buffer_khr const made =
        buffers.create(1, &queue, may_overlap(device) ? overlap : nullptr, &status);
    check("clCreateCommandBufferKHR", status);
    return made;
  });
}

backendkit::GraphHandle Runtime::end_capture(backendkit::StreamHandle stream, int index) {
  return new Graph{queue_of(stream, index).end_capture(), may_overlap(device_at(index))};
}

void Runtime::instantiate_graph(backendkit::GraphHandle graph, int index) {
  const Recorded& recorded = graph_of(graph).recorded;
  if (recorded.kernels.empty()) return;
  const CommandBuffers& buffers = command_buffers_of(device_at(index));
  check("clFinalizeCommandBufferKHR", buffers.finalize(recorded.commands));
}

void Runtime::replay_graph(backendkit::GraphHandle graph, backendkit::StreamHandle stream,
                           int index) {
  Graph& one = graph_of(graph);
  if (one.recorded.kernels.empty()) return;
  if (one.last != nullptr) {
    api().clWaitForEvents(1, &one.last);  // a failure is told by the stream
    api().clReleaseEvent(one.last);
    one.last = nullptr;
  }
  const auto enqueue = [&](cl_command_queue where, cl_event* event) {
    const cl_int status = command_buffers_of(device_at(index))
                              .enqueue(1, &where, one.recorded.commands, 0, nullptr, event);
    if (status == CL_SUCCESS && !one.overlaps) {
      one.last = *event;
      api().clRetainEvent(one.last);
    }
    return status;
  };
  queue_of(stream, index).add("graph", enqueue, one.recorded.faults);
}

void Runtime::destroy_graph(backendkit::GraphHandle graph, int index) {
  Graph* const one = &graph_of(graph);
  if (one->last != nullptr) api().clReleaseEvent(one->last);
  const cl_int status = command_buffers_of(device_at(index)).release(one->recorded.commands);
  delete one;
  check("clReleaseCommandBufferKHR", status);
}

}  // namespace ocl
