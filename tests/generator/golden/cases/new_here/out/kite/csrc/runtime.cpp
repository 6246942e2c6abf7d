#include "runtime.h"

#include <cstring>
#include <utility>

#include <backendkit/stream.h>

#include "collectives.h"
#include "simulator.h"

// Replace the body of each function with a call to your driver.

namespace kite {

namespace {

thread_local int current = 0;

simulator::Event& event_of(backendkit::EventHandle event) {
  return *static_cast<simulator::Event*>(event);
}

simulator::Graph& graph_of(backendkit::GraphHandle graph) {
  return *static_cast<simulator::Graph*>(graph);
}

simulator::Communicator& communicator_of(backendkit::CommunicatorHandle communicator) {
  return *static_cast<simulator::Communicator*>(communicator);
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
  return {.name = "kite simulator",
          .total_memory = simulator::memory_info(device).total,
          .multi_processor_count = 1,
          .major = 1,
          .minor = 0};
}

std::string Runtime::communicator_id() { return simulator::communicator_id(); }

backendkit::CommunicatorHandle Runtime::create_communicator(const std::string& id, int rank,
                                                            int size, int,
                                                            std::chrono::milliseconds timeout) {
  return simulator::create_communicator(id, rank, size, timeout);
}

void Runtime::destroy_communicator(backendkit::CommunicatorHandle communicator, int) {
  simulator::destroy(&communicator_of(communicator));
}

void Runtime::abort_communicator(backendkit::CommunicatorHandle communicator, int) {
  simulator::abort(communicator_of(communicator));
}

std::string Runtime::communicator_error(backendkit::CommunicatorHandle communicator, int) {
  return simulator::error_of(communicator_of(communicator));
}

bool Runtime::all_reduce(void* data, std::size_t count, backendkit::NumberType type,
                         backendkit::Reduce reduce, backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream) {
  if (!simulator::can_reduce(type)) return false;
  void* const numbers = simulator::inside(data, count * simulator::bytes_of(type), current);
  simulator::all_reduce(communicator_of(communicator), simulator::stream_of(stream, current),
                        numbers, count, type, reduce);
  return true;
}

bool Runtime::reduce_scatter(void* dst, const void* src, std::size_t count,
                             backendkit::NumberType type, backendkit::Reduce reduce,
                             backendkit::CommunicatorHandle communicator,
                             backendkit::StreamHandle stream) {
  if (!simulator::can_reduce(type)) return false;
  void* const part = simulator::inside(dst, count * simulator::bytes_of(type), current);
  simulator::reduce_scatter(communicator_of(communicator), simulator::stream_of(stream, current),
                            part, simulator::inside(src, 1, current), count, type, reduce);
  return true;
}

void Runtime::all_gather(void* dst, const void* src, std::size_t bytes,
                         backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream) {
  simulator::all_gather(communicator_of(communicator), simulator::stream_of(stream, current),
                        simulator::inside(dst, bytes, current),
                        simulator::inside(src, bytes, current), bytes);
}

void Runtime::broadcast(void* data, std::size_t bytes, int root,
                        backendkit::CommunicatorHandle communicator,
                        backendkit::StreamHandle stream) {
  simulator::broadcast(communicator_of(communicator), simulator::stream_of(stream, current),
                       simulator::inside(data, bytes, current), bytes, root);
}

void Runtime::send(const void* src, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream) {
  simulator::send(communicator_of(communicator), simulator::stream_of(stream, current),
                  simulator::inside(src, bytes, current), bytes, peer);
}

void Runtime::recv(void* dst, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream) {
  simulator::recv(communicator_of(communicator), simulator::stream_of(stream, current),
                  simulator::inside(dst, bytes, current), bytes, peer);
}

void Runtime::begin_group() { simulator::begin_group(); }

void Runtime::end_group() { simulator::end_group(); }

void launch(std::function<void()> kernel) {
  simulator::add(simulator::stream_of(backendkit::current_stream<Runtime>(current), current),
                 std::move(kernel));
}

}  // namespace kite
