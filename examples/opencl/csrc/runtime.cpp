#include "runtime.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include <backendkit/handles.h>

#include "devices.h"
#include "launch.h"

namespace ocl {

namespace {

thread_local int current = 0;

/// A buffer and an offset for a driver without pointers.
std::pair<cl_mem, std::size_t> buffer_of(const void* address, std::size_t bytes) {
  const backendkit::Location place = backendkit::locate(address, bytes);
  return {static_cast<cl_mem>(place.handle), place.offset};
}

/// A point in a queue. Not recorded yet: no event.
class Event {
 public:
  ~Event() { set(nullptr, nullptr); }

  void set(cl_event event, Queue* queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (event_ != nullptr) api().clReleaseEvent(event_);
    event_ = event;
    queue_ = queue;
  }

  /// What was recorded, which the caller releases, and where.
  std::pair<cl_event, Queue*> get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (event_ != nullptr) check("clRetainEvent", api().clRetainEvent(event_));
    return {event_, queue_};
  }

 private:
  std::mutex mutex_;
  cl_event event_ = nullptr;
  Queue* queue_ = nullptr;
};

/// An OpenCL event that is released at the end of a block.
class Held {
 public:
  explicit Held(backendkit::EventHandle handle) : Held(static_cast<Event*>(handle)->get()) {}
  explicit Held(std::pair<cl_event, Queue*> recorded)
      : event(recorded.first), queue(recorded.second) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (event != nullptr) api().clReleaseEvent(event);
  }

  cl_event const event;
  Queue* const queue;
};

/// An event of another context that completes when `event` does: contexts share no events.
cl_event mirrored(cl_event event, cl_context context) {
  cl_int status = CL_SUCCESS;
  cl_event const mirror = api().clCreateUserEvent(context, &status);
  check("clCreateUserEvent", status);
  const auto pass_on = [](cl_event, cl_int reached, void* other) {
    auto* const waiting = static_cast<cl_event>(other);
    api().clSetUserEventStatus(waiting, reached);
    api().clReleaseEvent(waiting);
  };
  check("clRetainEvent", api().clRetainEvent(mirror));
  check("clSetEventCallback", api().clSetEventCallback(event, CL_COMPLETE, pass_on, mirror));
  return mirror;
}

/// A copy within the current device, on its current stream, as a command of a graph.
void record_copy(void* dst, const void* src, std::size_t bytes) {
  Launch launch("copy", current, Variant{"copy", "copy_bytes", "", 0},
                [] { return std::string(); });
  launch.value(static_cast<cl_long>(bytes)).address(dst, 1).address(src, 1).run_for(bytes);
}

/// Pinned memory: buffers that stay mapped, by their address.
struct Pinned {
  cl_mem buffer;
  std::size_t bytes;
  int device;
};

std::mutex pinned_mutex;

std::map<const char*, Pinned>& pinned() {
  static auto* const all = new std::map<const char*, Pinned>;
  return *all;
}

}  // namespace

int Runtime::device_count() { return count_devices(); }

int Runtime::current_device() { return current; }

void Runtime::set_device(int device) { current = device; }

void* Runtime::allocate(std::size_t bytes, int index) {
  Device& device = device_at(index);
  if (bytes > device.memory || device.used > device.memory - bytes) return nullptr;
  void* pointer = nullptr;
  if (device.svm) {
    const cl_svm_mem_flags fine = device.host_accessible ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0;
    pointer = api().clSVMAlloc(device.context, CL_MEM_READ_WRITE | fine, bytes, 0);
    if (pointer != nullptr) device.svm_buffers.add(pointer, bytes);
  } else {
    cl_int status = CL_SUCCESS;
    cl_mem const buffer =
        api().clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_INVALID_BUFFER_SIZE ||
        status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY) {
      return nullptr;
    }
    check("clCreateBuffer", status);
    pointer = backendkit::map_buffer(buffer, bytes, index);
    if (pointer == nullptr) api().clReleaseMemObject(buffer);
  }
  if (pointer != nullptr) device.used += bytes;
  return pointer;
}

void Runtime::deallocate(void* pointer, std::size_t bytes, int index) {
  Device& device = device_at(index);
  device.used -= bytes;
  if (device.svm) {
    device.svm_buffers.remove(pointer);
    api().clSVMFree(device.context, pointer);
  } else {
    auto* const buffer = static_cast<cl_mem>(backendkit::unmap_buffer(pointer));
    check("clReleaseMemObject", api().clReleaseMemObject(buffer));
  }
}

bool Runtime::host_accessible(int device) { return device_at(device).host_accessible; }

void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream) {
  using enum backendkit::CopyKind;
  Queue& queue = queue_of(stream, current);
  if (kind == kDeviceToDevice && queue.recording()) return record_copy(dst, src, bytes);
  queue.add("copy", [&](cl_command_queue where, cl_event* event) {
    if (device_at(current).svm) {
      return api().clEnqueueSVMMemcpy(where, CL_FALSE, dst, src, bytes, 0, nullptr, event);
    }
    if (kind == kHostToDevice) {
      const auto [buffer, offset] = buffer_of(dst, bytes);
      return api().clEnqueueWriteBuffer(where, buffer, CL_FALSE, offset, bytes, src, 0, nullptr,
                                        event);
    }
    const auto [buffer, offset] = buffer_of(src, bytes);
    if (kind == kDeviceToHost) {
      return api().clEnqueueReadBuffer(where, buffer, CL_FALSE, offset, bytes, dst, 0, nullptr,
                                       event);
    }
    const auto [other, place] = buffer_of(dst, bytes);
    return api().clEnqueueCopyBuffer(where, buffer, other, offset, place, bytes, 0, nullptr, event);
  });
}

void Runtime::synchronize(int index) {
  Device& device = device_at(index);
  std::vector<Queue*> all = {device.default_queue.get()};
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    for (const auto& queue : device.queues) all.push_back(queue.get());
  }
  for (Queue* const queue : all) queue->wait();
}

backendkit::StreamHandle Runtime::create_stream(int index, int priority) {
  Device& device = device_at(index);
  auto queue = make_queue(device, index, priority);
  const std::lock_guard<std::mutex> lock(device.mutex);
  return device.queues.emplace_back(std::move(queue)).get();
}

void Runtime::synchronize_stream(backendkit::StreamHandle stream, int device) {
  queue_of(stream, device).wait();
}

bool Runtime::query_stream(backendkit::StreamHandle stream, int device) {
  return queue_of(stream, device).idle();
}

// Every queue takes times, so `timing` is ignored.
backendkit::EventHandle Runtime::create_event(int, bool) { return new Event; }

void Runtime::destroy_event(backendkit::EventHandle event, int) {
  delete static_cast<Event*>(event);
}

void Runtime::record_event(backendkit::EventHandle event, backendkit::StreamHandle stream,
                           int device) {
  Queue& queue = queue_of(stream, device);
  static_cast<Event*>(event)->set(queue.marker(), &queue);
}

void Runtime::wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event,
                         int device) {
  const Held recorded(event);
  if (recorded.event == nullptr) return;
  cl_context const here = device_at(device).context;
  const bool apart = device_at(recorded.queue->device()).context != here;
  const Held other({apart ? mirrored(recorded.event, here) : nullptr, nullptr});
  cl_event const wanted = apart ? other.event : recorded.event;
  queue_of(stream, device).add("wait_event", [&](cl_command_queue where, cl_event* made) {
    return api().clEnqueueBarrierWithWaitList(where, 1, &wanted, made);
  });
}

bool Runtime::query_event(backendkit::EventHandle event, int) {
  const Held recorded(event);
  if (recorded.event == nullptr) return true;
  const cl_int status = status_of(recorded.event);
  if (status < 0) recorded.queue->raise_failure();
  return status <= CL_COMPLETE;
}

void Runtime::synchronize_event(backendkit::EventHandle event, int) {
  const Held recorded(event);
  if (recorded.event == nullptr) return;
  const cl_int status = api().clWaitForEvents(1, &recorded.event);
  recorded.queue->raise_failure();
  check("clWaitForEvents", status);
  recorded.queue->raise_fault();
}

double Runtime::elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int) {
  const auto nanoseconds = [](const Held& recorded) {
    cl_ulong time = 0;
    check("clGetEventProfilingInfo",
          api().clGetEventProfilingInfo(recorded.event, CL_PROFILING_COMMAND_END, sizeof time,
                                        &time, nullptr));
    return time;
  };
  const auto taken = nanoseconds(Held(end)) - nanoseconds(Held(start));
  return static_cast<double>(static_cast<std::int64_t>(taken)) * 1e-6;
}

// OpenCL does not say how much is free: other processes are not counted.
backendkit::MemoryInfo Runtime::memory_info(int index) {
  const Device& device = device_at(index);
  const std::size_t used = device.used;
  return {.free = device.memory - std::min(used, device.memory),
          .total = device.memory,
          .largest = number_of<cl_ulong>(device.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE)};
}

void* Runtime::allocate_host(std::size_t bytes) {
  Device& device = device_at(current);
  cl_int status = CL_SUCCESS;
  cl_mem const buffer = api().clCreateBuffer(
      device.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  const auto release = [](cl_mem one) { api().clReleaseMemObject(one); };
  std::unique_ptr<std::remove_pointer_t<cl_mem>, decltype(release)> held(buffer, release);
  void* pointer = nullptr;
  device.pinning_queue->add("clEnqueueMapBuffer", [&](cl_command_queue where, cl_event* event) {
    pointer = api().clEnqueueMapBuffer(where, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                                       0, nullptr, event, &status);
    return status;
  });
  const std::lock_guard<std::mutex> lock(pinned_mutex);
  pinned().emplace(static_cast<char*>(pointer), Pinned{held.release(), bytes, current});
  return pointer;
}

void Runtime::deallocate_host(void* pointer, std::size_t) {
  Pinned block{};
  {
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    block = pinned().extract(static_cast<char*>(pointer)).mapped();
  }
  Queue& queue = *device_at(block.device).pinning_queue;
  queue.add("clEnqueueUnmapMemObject", [&](cl_command_queue where, cl_event* event) {
    return api().clEnqueueUnmapMemObject(where, block.buffer, pointer, 0, nullptr, event);
  });
  queue.wait();
  check("clReleaseMemObject", api().clReleaseMemObject(block.buffer));
}

bool Runtime::is_host_pointer(const void* pointer) {
  const auto* const address = static_cast<const char*>(pointer);
  const std::lock_guard<std::mutex> lock(pinned_mutex);
  const auto after = pinned().upper_bound(address);
  if (after == pinned().begin()) return false;
  const auto& [begin, block] = *std::prev(after);
  return address < begin + block.bytes;
}

// Devices of one platform share a context, in which any queue can use the memory of all.
bool Runtime::can_access_peer(int device, int peer) {
  const Device& one = device_at(device);
  const Device& other = device_at(peer);
  return one.context == other.context && one.svm == other.svm;
}

void Runtime::copy_peer(void* dst, int, const void* src, int, std::size_t bytes,
                        backendkit::StreamHandle stream) {
  copy(dst, src, bytes, backendkit::CopyKind::kDeviceToDevice, stream);
}

backendkit::DeviceProperties Runtime::properties(int index) {
  const Device& device = device_at(index);
  const std::string version = text_of(device.id, CL_DEVICE_VERSION);  // "OpenCL 3.0 ..."
  const auto digit = [&](std::size_t place) {
    return place < version.size() && version[place] >= '0' && version[place] <= '9'
               ? version[place] - '0'
               : 0;
  };
  return {.name = device.name,
          .total_memory = device.memory,
          .multi_processor_count = static_cast<int>(device.units),
          .major = digit(7),
          .minor = digit(9)};
}

}  // namespace ocl
