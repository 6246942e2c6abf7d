// SPDX-License-Identifier: Apache-2.0
// A Runtime whose functions fail as they are told, with the starter project's simulator behind it.
#include "runtime.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace foo {

/// What a driver throws that knows nothing of C++'s library.
struct Status {
  int code;
};

namespace {

constexpr auto kSlow = std::chrono::milliseconds(60);
constexpr auto kGate = std::chrono::milliseconds(40);

/// What functions are to do, by name, and how often each was called. The variable FOO_FAULTS of the
/// environment says it from the start: "device_count=std,copy=late".
struct Faults {
  std::mutex mutex;
  std::map<std::string, std::string> chosen;
  std::map<std::string, int> calls;

  Faults() {
    const char* const text = std::getenv("FOO_FAULTS");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      const std::string one = rest.substr(0, rest.find(','));
      rest.erase(0, one.size() + 1);
      chosen[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
    }
  }

  std::string of(const char* function) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = chosen.find(function);
    return found == chosen.end() ? "" : found->second;
  }

  void choose(const std::string& function, const std::string& fault) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (fault.empty()) {
      chosen.erase(function);
    } else {
      chosen[function] = fault;
    }
  }

  void count(const char* function) {
    const std::lock_guard<std::mutex> lock(mutex);
    ++calls[function];
  }
};

Faults& faults() {
  static auto* const all = new Faults;
  return *all;
}

/// Told so, says at the end of the process what was given back until then.
struct Report {
  ~Report() {
    if (faults().of("report").empty()) return;
    std::printf("deallocate %d, deallocate_host %d\n", faults().calls["deallocate"],
                faults().calls["deallocate_host"]);
    std::fflush(stdout);
  }
} report;

std::string injected(const char* function) {
  return std::string("injected into ") + function;
}

/// Calls the simulator's function, or does what it was told in its place. What it returns where
/// it is told to return null or garbage is `null` and `garbage`.
template <class Result, class Call>
Result run(const char* function, Result null, Result garbage, const Call& call) {
  faults().count(function);
  const std::string fault = faults().of(function);
  if (fault.empty()) return call();
  if (fault == "once") faults().choose(function, "");
  if (fault == "std" || fault == "once") throw std::runtime_error(injected(function));
  if (fault == "bytes") throw std::runtime_error(injected(function) + " \xFF\xFE");
  if (fault == "silent") throw std::runtime_error("");
  if (fault == "c10") TORCH_CHECK_NOT_IMPLEMENTED(false, injected(function));
  if (fault == "other") throw Status{7};
  if (fault == "number") throw 7;
  if (fault == "null") return null;
  if (fault == "garbage") return garbage;
  if (fault == "slow") std::this_thread::sleep_for(kSlow);
  if (fault == "very slow") std::this_thread::sleep_for(20 * kSlow);
  Result result = call();
  if (fault == "late") throw std::runtime_error(injected(function));
  return result;
}

struct Nothing {};

template <class Call>
void run_void(const char* function, const Call& call) {
  run(function, Nothing{}, Nothing{}, [&] {
    call();
    return Nothing{};
  });
}

/// The memory that a function gave last, unless that went back.
struct Latest {
  std::atomic<void*> pointer{nullptr};

  void forget(void* gone) { pointer.compare_exchange_strong(gone, nullptr); }

  /// What memory must not be: what was given before, or an address that no number may have.
  void* wrong() const {
    void* const before = pointer;
    return before == nullptr ? reinterpret_cast<void*>(std::uintptr_t{0x1001}) : before;
  }
};

Latest latest_of_device;
Latest latest_of_host;

/// Work in front of a copy that goes on when the host has gone on long since.
void hold_back(backendkit::StreamHandle stream, int device) {
  if (faults().of("gate").empty()) return;
  simulator::add(simulator::stream_of(stream, device), [] { std::this_thread::sleep_for(kGate); });
}

}  // namespace

int Runtime::device_count() {
  return run("device_count", 0, -1, [] {
    return faults().of("device_count") == "many" ? 200 : Simulated::device_count();
  });
}

int Runtime::current_device() {
  return run("current_device", 0, 1000, [] { return Simulated::current_device(); });
}

void Runtime::set_device(int device) {
  run_void("set_device", [&] { Simulated::set_device(device); });
}

void* Runtime::allocate(std::size_t bytes, int device) {
  return run<void*>("allocate", nullptr, latest_of_device.wrong(),
                    [&] { return latest_of_device.pointer = Simulated::allocate(bytes, device); });
}

void Runtime::deallocate(void* pointer, std::size_t bytes, int device) {
  latest_of_device.forget(pointer);
  run_void("deallocate", [&] { Simulated::deallocate(pointer, bytes, device); });
}

void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream) {
  run_void("copy", [&] {
    hold_back(stream, Simulated::current_device());
    Simulated::copy(dst, src, bytes, kind, stream);
  });
}

void Runtime::synchronize(int device) {
  run_void("synchronize", [&] { Simulated::synchronize(device); });
}

backendkit::StreamHandle Runtime::create_stream(int device, int priority) {
  return run<backendkit::StreamHandle>("create_stream", nullptr, nullptr,
                                       [&] { return Simulated::create_stream(device, priority); });
}

void Runtime::synchronize_stream(backendkit::StreamHandle stream, int device) {
  run_void("synchronize_stream", [&] { Simulated::synchronize_stream(stream, device); });
}

bool Runtime::query_stream(backendkit::StreamHandle stream, int device) {
  return run("query_stream", false, false, [&] { return Simulated::query_stream(stream, device); });
}

backendkit::EventHandle Runtime::create_event(int device, bool timing) {
  return run<backendkit::EventHandle>("create_event", nullptr, nullptr,
                                      [&] { return Simulated::create_event(device, timing); });
}

void Runtime::destroy_event(backendkit::EventHandle event, int device) {
  run_void("destroy_event", [&] { Simulated::destroy_event(event, device); });
}

void Runtime::record_event(backendkit::EventHandle event, backendkit::StreamHandle stream,
                           int device) {
  run_void("record_event", [&] { Simulated::record_event(event, stream, device); });
}

void Runtime::wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event,
                         int device) {
  run_void("wait_event", [&] { Simulated::wait_event(stream, event, device); });
}

bool Runtime::query_event(backendkit::EventHandle event, int device) {
  return run("query_event", false, false, [&] { return Simulated::query_event(event, device); });
}

void Runtime::synchronize_event(backendkit::EventHandle event, int device) {
  run_void("synchronize_event", [&] { Simulated::synchronize_event(event, device); });
}

double Runtime::elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int device) {
  return run("elapsed_ms", 0.0, std::numeric_limits<double>::quiet_NaN(),
             [&] { return Simulated::elapsed_ms(start, end, device); });
}

backendkit::MemoryInfo Runtime::memory_info(int device) {
  return run<backendkit::MemoryInfo>("memory_info", {}, {2, 1},
                                     [&] { return Simulated::memory_info(device); });
}

void* Runtime::allocate_host(std::size_t bytes) {
  return run<void*>("allocate_host", nullptr, latest_of_host.wrong(),
                    [&] { return latest_of_host.pointer = Simulated::allocate_host(bytes); });
}

void Runtime::deallocate_host(void* pointer, std::size_t bytes) {
  latest_of_host.forget(pointer);
  run_void("deallocate_host", [&] { Simulated::deallocate_host(pointer, bytes); });
}

bool Runtime::is_host_pointer(const void* pointer) {
  return run("is_host_pointer", false, true, [&] { return Simulated::is_host_pointer(pointer); });
}

bool Runtime::can_access_peer(int device, int peer) {
  return run("can_access_peer", false, false,
             [&] { return Simulated::can_access_peer(device, peer); });
}

void Runtime::copy_peer(void* dst, int dst_device, const void* src, int src_device,
                        std::size_t bytes, backendkit::StreamHandle stream) {
  run_void("copy_peer", [&] {
    hold_back(stream, src_device);
    Simulated::copy_peer(dst, dst_device, src, src_device, bytes, stream);
    if (faults().of("copy_peer") == "and the next event") faults().choose("record_event", "std");
  });
}

void Runtime::begin_capture(backendkit::StreamHandle stream, int device) {
  run_void("begin_capture", [&] { Simulated::begin_capture(stream, device); });
}

backendkit::GraphHandle Runtime::end_capture(backendkit::StreamHandle stream, int device) {
  // Whatever comes, the stream does not record any more.
  backendkit::GraphHandle const graph = Simulated::end_capture(stream, device);
  return run<backendkit::GraphHandle>("end_capture", nullptr, nullptr, [&] { return graph; });
}

void Runtime::instantiate_graph(backendkit::GraphHandle graph, int device) {
  run_void("instantiate_graph", [&] { Simulated::instantiate_graph(graph, device); });
}

void Runtime::replay_graph(backendkit::GraphHandle graph, backendkit::StreamHandle stream,
                           int device) {
  run_void("replay_graph", [&] { Simulated::replay_graph(graph, stream, device); });
}

void Runtime::destroy_graph(backendkit::GraphHandle graph, int device) {
  run_void("destroy_graph", [&] { Simulated::destroy_graph(graph, device); });
}

bool Runtime::copy_elements(const at::Tensor&, const at::Tensor&) {
  return run("copy_elements", false, false, [] { return false; });
}

backendkit::DeviceProperties Runtime::properties(int device) {
  return run<backendkit::DeviceProperties>(
      "properties", {}, {.name = "", .multi_processor_count = -1}, [&] {
        backendkit::DeviceProperties all = Simulated::properties(device);
        if (faults().of("properties") == "bytes in the name") all.name = "foo \xFF \xC3\xA9";
        return all;
      });
}

std::string Runtime::communicator_id() {
  return run<std::string>("communicator_id", "", std::string(2000, 'x'),
                          [] { return Simulated::communicator_id(); });
}

backendkit::CommunicatorHandle Runtime::create_communicator(const std::string& id, int rank,
                                                            int size, int device,
                                                            std::chrono::milliseconds timeout) {
  return run<backendkit::CommunicatorHandle>("create_communicator", nullptr, nullptr, [&] {
    return Simulated::create_communicator(id, rank, size, device, timeout);
  });
}

void Runtime::destroy_communicator(backendkit::CommunicatorHandle communicator, int device) {
  run_void("destroy_communicator", [&] { Simulated::destroy_communicator(communicator, device); });
}

void Runtime::abort_communicator(backendkit::CommunicatorHandle communicator, int device) {
  run_void("abort_communicator", [&] { Simulated::abort_communicator(communicator, device); });
}

std::string Runtime::communicator_error(backendkit::CommunicatorHandle communicator, int device) {
  return run<std::string>("communicator_error", "", "rank 7 is \xFF gone",
                          [&] { return Simulated::communicator_error(communicator, device); });
}

bool Runtime::all_reduce(void* data, std::size_t count, backendkit::NumberType type,
                         backendkit::Reduce reduce, backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream) {
  return run("all_reduce", false, false, [&] {
    hold_back(stream, Simulated::current_device());
    return Simulated::all_reduce(data, count, type, reduce, communicator, stream);
  });
}

bool Runtime::reduce_scatter(void* dst, const void* src, std::size_t count,
                             backendkit::NumberType type, backendkit::Reduce reduce,
                             backendkit::CommunicatorHandle communicator,
                             backendkit::StreamHandle stream) {
  return run("reduce_scatter", false, false, [&] {
    return Simulated::reduce_scatter(dst, src, count, type, reduce, communicator, stream);
  });
}

void Runtime::all_gather(void* dst, const void* src, std::size_t bytes,
                         backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream) {
  run_void("all_gather", [&] { Simulated::all_gather(dst, src, bytes, communicator, stream); });
}

void Runtime::broadcast(void* data, std::size_t bytes, int root,
                        backendkit::CommunicatorHandle communicator,
                        backendkit::StreamHandle stream) {
  run_void("broadcast", [&] { Simulated::broadcast(data, bytes, root, communicator, stream); });
}

void Runtime::send(const void* src, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream) {
  run_void("send", [&] { Simulated::send(src, bytes, peer, communicator, stream); });
}

void Runtime::recv(void* dst, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream) {
  run_void("recv", [&] { Simulated::recv(dst, bytes, peer, communicator, stream); });
}

void Runtime::begin_group() {
  run_void("begin_group", [] { Simulated::begin_group(); });
}

void Runtime::end_group() {
  run_void("end_group", [] { Simulated::end_group(); });
}

void Runtime::save_metadata(const at::Tensor&, backendkit::TensorMetadata& metadata) {
  if (faults().of("save_metadata") == "garbage") metadata["kept \xFF"] = true;
  run_void("save_metadata", [&] { metadata["kept"] = true; });
}

void Runtime::load_metadata(const at::Tensor&, backendkit::TensorMetadata&) {
  run_void("load_metadata", [] {});
}

}  // namespace foo

#define FOO_API extern "C" __attribute__((visibility("default")))

/// Tells a function what to do from now on: one of the words of `run`, or nothing to be right.
FOO_API void foo_fault(const char* function, const char* fault);

/// How often a function was called so far.
FOO_API int foo_calls(const char* function);

void foo_fault(const char* function, const char* fault) {
  foo::faults().choose(function, fault);
}

int foo_calls(const char* function) {
  const std::lock_guard<std::mutex> lock(foo::faults().mutex);
  return foo::faults().calls[function];
}
