#include "runtime.h"

#include <cstring>
#include <utility>

#include <backendkit/stream.h>

#include "simulator.h"

// Replace the body of each function with a call to your driver.

namespace {{device}} {

namespace {

thread_local int current = 0;

simulator::Event& event_of(backendkit::EventHandle event) {
  return *static_cast<simulator::Event*>(event);
}

simulator::Graph& graph_of(backendkit::GraphHandle graph) {
  return *static_cast<simulator::Graph*>(graph);
}

}  // namespace

// Called once per process, even if there is no driver; return 0 then.
int Runtime::device_count() { return simulator::device_count(); }

int Runtime::current_device() { return current; }

void Runtime::set_device(int device) { current = device; }

// Return null if the device has not enough memory; PyTorch then raises torch.OutOfMemoryError.
void* Runtime::allocate(std::size_t bytes, int device) { return simulator::allocate(bytes, device); }

void Runtime::deallocate(void* pointer, std::size_t bytes, int device) {
  simulator::deallocate(pointer, bytes, device);
}

void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream) {
  using enum backendkit::CopyKind;
  if (kind != kDeviceToHost) dst = simulator::inside(dst, bytes, current);
  if (kind != kHostToDevice) src = simulator::inside(src, bytes, current);
  simulator::add(simulator::stream_of(stream, current), [=] { std::memmove(dst, src, bytes); });
}

void Runtime::synchronize(int device) { simulator::wait_for_all(device); }

// All simulated streams have the same priority.
backendkit::StreamHandle Runtime::create_stream(int device, int) {
  return simulator::create_stream(device);
}

void Runtime::synchronize_stream(backendkit::StreamHandle stream, int device) {
  simulator::wait(simulator::stream_of(stream, device));
}

bool Runtime::query_stream(backendkit::StreamHandle stream, int device) {
  return simulator::idle(simulator::stream_of(stream, device));
}

// Every simulated event records its time, so `timing` is ignored.
backendkit::EventHandle Runtime::create_event(int, bool) { return simulator::create_event(); }

void Runtime::destroy_event(backendkit::EventHandle event, int) {
  simulator::destroy(&event_of(event));
}

void Runtime::record_event(backendkit::EventHandle event, backendkit::StreamHandle stream,
                           int device) {
  simulator::record(event_of(event), simulator::stream_of(stream, device));
}

void Runtime::wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event,
                         int device) {
  simulator::wait(simulator::stream_of(stream, device), event_of(event));
}

bool Runtime::query_event(backendkit::EventHandle event, int) {
  return simulator::done(event_of(event));
}

void Runtime::synchronize_event(backendkit::EventHandle event, int) {
  simulator::wait(event_of(event));
}

double Runtime::elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int) {
  return simulator::milliseconds(event_of(start), event_of(end));
}

backendkit::MemoryInfo Runtime::memory_info(int device) { return simulator::memory_info(device); }

void* Runtime::allocate_host(std::size_t bytes) { return simulator::allocate_host(bytes); }

void Runtime::deallocate_host(void* pointer, std::size_t) { simulator::deallocate_host(pointer); }

bool Runtime::is_host_pointer(const void* pointer) { return simulator::is_host_pointer(pointer); }

bool Runtime::can_access_peer(int, int) { return true; }

void Runtime::copy_peer(void* dst, int dst_device, const void* src, int src_device,
                        std::size_t bytes, backendkit::StreamHandle stream) {
  void* const to = simulator::inside(dst, bytes, dst_device);
  const void* const from = simulator::inside(src, bytes, src_device);
  simulator::add(simulator::stream_of(stream, src_device), [=] { std::memmove(to, from, bytes); });
}

void Runtime::begin_capture(backendkit::StreamHandle stream, int device) {
  simulator::begin_capture(simulator::stream_of(stream, device));
}

backendkit::GraphHandle Runtime::end_capture(backendkit::StreamHandle stream, int device) {
  return simulator::end_capture(simulator::stream_of(stream, device));
}

// A simulated graph needs no preparation.
void Runtime::instantiate_graph(backendkit::GraphHandle, int) {}

void Runtime::replay_graph(backendkit::GraphHandle graph, backendkit::StreamHandle stream,
                           int device) {
  simulator::replay(graph_of(graph), simulator::stream_of(stream, device));
}

void Runtime::destroy_graph(backendkit::GraphHandle graph, int) {
  simulator::destroy(&graph_of(graph));
}

backendkit::DeviceProperties Runtime::properties(int device) {
  return {.name = "{{device}} simulator",
          .total_memory = simulator::memory_info(device).total,
          .multi_processor_count = 1,
          .major = 1,
          .minor = 0};
}

void launch(std::function<void()> kernel) {
  simulator::add(simulator::stream_of(backendkit::current_stream<Runtime>(current), current),
                 std::move(kernel));
}

}  // namespace {{device}}
