#pragma once

#include <cstddef>
#include <functional>

#include <backendkit/runtime.h>

/// Simulated devices: their memory is host memory, their streams are threads. runtime.cpp calls
/// these functions in place of your driver. Delete this file and simulator.cpp once your driver
/// works.
///
/// Environment variables, read once:
///   NPU_SIMULATOR_DEVICES number of devices, from 0 to kDevices; default kDevices
///   NPU_SIMULATOR_MEMORY  bytes of memory per device; default 16 GiB
///   NPU_SIMULATOR_DELAY   the longest random delay before each task, in microseconds;
///                                      default 0. A delay of 200 soon exposes a missing wait.
namespace npu::simulator {

constexpr int kDevices = 2;
int device_count();

/// Whether the host can use a device's addresses too. On most devices it cannot. If false, the memory
/// is made of buffers with handles, as <backendkit/handles.h> describes, and an access by the host
/// crashes here as well, so that you find the mistake before you run on your device.
constexpr bool kUnified = false;

/// `allocate` returns null when the device has not enough memory. `deallocate` is called once all
/// work that used the memory has completed.
void* allocate(std::size_t bytes, int device);
void deallocate(void* pointer, std::size_t bytes, int device);
backendkit::MemoryInfo memory_info(int device);

/// Translates a device address to the host address where the simulator keeps those bytes. Null
/// stays null. Throws std::out_of_range for bytes that are not allocated on the device.
void* inside(const void* address, std::size_t bytes, int device);

/// The same for kernels; accepts an address on any device.
template <class T>
T* inside(T* address) {
  return static_cast<T*>(inside(address, 1, -1));
}

/// Pinned memory: host memory that the devices can use.
void* allocate_host(std::size_t bytes);
void deallocate_host(void* pointer);
bool is_host_pointer(const void* pointer);

/// A stream runs tasks in order, on a thread that starts with the first task. A null handle is the
/// device's default stream. Streams are never destroyed: their threads run until the process ends.
class Stream;
Stream* create_stream(int device);
Stream& stream_of(void* handle, int device);
void add(Stream& stream, std::function<void()> task);
void wait(Stream& stream);
bool idle(Stream& stream);
void wait_for_all(int device);

/// Tasks that a stream did not run but recorded, to run them any number of times.
class Graph;
void begin_capture(Stream& stream);
Graph* end_capture(Stream& stream);
void replay(Graph& graph, Stream& stream);
void destroy(Graph* graph);

/// A point in a stream's work, and the time at which the stream reaches it.
class Event;
Event* create_event();
void destroy(Event* event);
void record(Event& event, Stream& stream);
void wait(Stream& stream, Event& event);
void wait(Event& event);
bool done(Event& event);
double milliseconds(Event& start, Event& end);

}  // namespace npu::simulator
