// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <backendkit/device/allocated_memory.h>
#include <backendkit/device/check_runtime.h>
#include <backendkit/device/driver_error.h>
#include <backendkit/runtime.h>

namespace backendkit {

/// The only class that calls a Runtime. It has the Runtime's functions, with the same names. If a
/// function throws or returns an invalid result, that becomes a PyTorch error that names the
/// function and the device; functions that must not throw warn instead. Some functions here take a
/// device index that the Runtime's do not: it is the device to name in the error.
template <class Runtime>
class Driver {
 public:
  static_assert(check_runtime<Runtime>());

  /// Never negative.
  static int device_count() {
    const int count = call("device_count", kNone, [] { return Runtime::device_count(); });
    if (count < 0) returned("device_count", kNone, std::to_string(count));
    return count;
  }

  /// Always an index of one of `count` devices.
  static int current_device(int count) {
    const int device = call("current_device", kNone, [] { return Runtime::current_device(); });
    if (device < 0 || device >= count) [[unlikely]] {
      returned("current_device", kNone,
               std::to_string(device) + ", which is not the index of one of " +
                   std::to_string(count) + " devices");
    }
    return device;
  }

  static void set_device(int device) {
    call("set_device", device, [&] { Runtime::set_device(device); });
  }

  /// Null if the Runtime returns null or throws std::bad_alloc or PyTorch's OutOfMemoryError.
  /// Throws if the memory overlaps memory that is already allocated, or is not aligned for any type
  /// of number.
  static void* allocate(std::size_t bytes, int device) {
    return checked_memory("allocate", bytes, device,
                          [&] { return Runtime::allocate(bytes, device); });
  }

  static void deallocate(void* pointer, std::size_t bytes, int device) noexcept {
    memory().remove(device, pointer);
    call_only("deallocate", device, "the device memory is leaked",
              [&] { Runtime::deallocate(pointer, bytes, device); });
  }

  static void copy(void* dst, const void* src, std::size_t bytes, CopyKind kind,
                   StreamHandle stream, int device) {
    call("copy", device, [&] { Runtime::copy(dst, src, bytes, kind, stream); });
  }

  static void synchronize(int device) {
    call("synchronize", device, [&] { Runtime::synchronize(device); });
  }

  /// Whether the host can access the memory of a device; false if the Runtime does not say.
  static bool host_accessible([[maybe_unused]] int device) {
    if constexpr (HasHostAccessible<Runtime>) {
      return call("host_accessible", device, [&] { return Runtime::host_accessible(device); });
    } else {
      return may_be_host_accessible<Runtime>();
    }
  }

  /// Never null.
  static StreamHandle create_stream(int device, int priority) requires HasStreams<Runtime> {
    StreamHandle const stream =
        call("create_stream", device, [&] { return Runtime::create_stream(device, priority); });
    if (stream == nullptr) {
      returned("create_stream", device, "null, which means the default stream,");
    }
    return stream;
  }

  static void synchronize_stream(StreamHandle stream, int device) requires HasStreams<Runtime> {
    call("synchronize_stream", device, [&] { Runtime::synchronize_stream(stream, device); });
  }

  static bool query_stream(StreamHandle stream, int device) requires HasStreams<Runtime> {
    return call("query_stream", device, [&] { return Runtime::query_stream(stream, device); });
  }

  /// Never null.
  static EventHandle create_event(int device, bool timing) requires HasEvents<Runtime> {
    EventHandle const event =
        call("create_event", device, [&] { return Runtime::create_event(device, timing); });
    if (event == nullptr) [[unlikely]]
      returned("create_event", device, "null");
    return event;
  }

  static void destroy_event(EventHandle event, int device) noexcept requires HasEvents<Runtime> {
    call_only("destroy_event", device, "the event is leaked",
              [&] { Runtime::destroy_event(event, device); });
  }

  static void record_event(EventHandle event, StreamHandle stream,
                           int device) requires HasEvents<Runtime> {
    call("record_event", device, [&] { Runtime::record_event(event, stream, device); });
  }

  static void wait_event(StreamHandle stream, EventHandle event,
                         int device) requires HasEvents<Runtime> {
    call("wait_event", device, [&] { Runtime::wait_event(stream, event, device); });
  }

  static bool query_event(EventHandle event, int device) requires HasEvents<Runtime> {
    return call("query_event", device, [&] { return Runtime::query_event(event, device); });
  }

  static void synchronize_event(EventHandle event, int device) requires HasEvents<Runtime> {
    call("synchronize_event", device, [&] { Runtime::synchronize_event(event, device); });
  }

  /// Always a finite number.
  static double elapsed_ms(EventHandle start, EventHandle end,
                           int device) requires HasElapsedMs<Runtime> {
    const double time =
        call("elapsed_ms", device, [&] { return Runtime::elapsed_ms(start, end, device); });
    if (!std::isfinite(time)) returned("elapsed_ms", device, std::to_string(time));
    return time;
  }

  /// Never more free bytes than total bytes; both fit into 64 bits with a sign, as Python's callers
  /// get them.
  static MemoryInfo memory_info(int device) requires HasMemoryInfo<Runtime> {
    const MemoryInfo info =
        call("memory_info", device, [&] { return Runtime::memory_info(device); });
    if (info.free > info.total || info.total > kMostBytes) {
      returned("memory_info", device,
               std::to_string(info.free) + " free bytes of " + std::to_string(info.total));
    }
    return info;
  }

  /// Like `allocate`.
  static void* allocate_host(std::size_t bytes) requires HasPinnedMemory<Runtime> {
    return checked_memory("allocate_host", bytes, kNone,
                          [&] { return Runtime::allocate_host(bytes); });
  }

  static void deallocate_host(void* pointer,
                              std::size_t bytes) noexcept requires HasPinnedMemory<Runtime> {
    memory().remove(kNone, pointer);
    call_only("deallocate_host", kNone, "pinned memory is leaked",
              [&] { Runtime::deallocate_host(pointer, bytes); });
  }

  static bool is_host_pointer(const void* pointer) requires HasPinnedMemory<Runtime> {
    return call("is_host_pointer", kNone, [&] { return Runtime::is_host_pointer(pointer); });
  }

  static bool can_access_peer(int device, int peer) requires HasPeers<Runtime> {
    return call("can_access_peer", device, [&] { return Runtime::can_access_peer(device, peer); });
  }

  static void copy_peer(void* dst, int dst_device, const void* src, int src_device,
                        std::size_t bytes, StreamHandle stream) requires HasPeers<Runtime> {
    call("copy_peer", src_device,
         [&] { Runtime::copy_peer(dst, dst_device, src, src_device, bytes, stream); });
  }

  static void begin_capture(StreamHandle stream, int device) requires HasGraphs<Runtime> {
    call("begin_capture", device, [&] { Runtime::begin_capture(stream, device); });
  }

  /// Never null.
  static GraphHandle end_capture(StreamHandle stream, int device) requires HasGraphs<Runtime> {
    GraphHandle const graph =
        call("end_capture", device, [&] { return Runtime::end_capture(stream, device); });
    if (graph == nullptr) returned("end_capture", device, "null");
    return graph;
  }

  static void instantiate_graph(GraphHandle graph, int device) requires HasGraphs<Runtime> {
    call("instantiate_graph", device, [&] { Runtime::instantiate_graph(graph, device); });
  }

  static void replay_graph(GraphHandle graph, StreamHandle stream,
                           int device) requires HasGraphs<Runtime> {
    call("replay_graph", device, [&] { Runtime::replay_graph(graph, stream, device); });
  }

  static void destroy_graph(GraphHandle graph, int device) noexcept requires HasGraphs<Runtime> {
    call_only("destroy_graph", device, "the graph is leaked",
              [&] { Runtime::destroy_graph(graph, device); });
  }

  /// False if the Runtime has no such function.
  static bool copy_elements([[maybe_unused]] const at::Tensor& src,
                            [[maybe_unused]] const at::Tensor& dst, [[maybe_unused]] int device) {
    if constexpr (HasCopyElements<Runtime>) {
      return call("copy_elements", device, [&] { return Runtime::copy_elements(src, dst); });
    } else {
      return false;
    }
  }

  /// The name is UTF-8, and no number is negative.
  static DeviceProperties properties(int device) requires HasProperties<Runtime> {
    DeviceProperties all = call("properties", device, [&] { return Runtime::properties(device); });
    all.name = as_utf8(all.name);
    if (all.total_memory > kMostBytes || all.multi_processor_count < 0 || all.major < 0 ||
        all.minor < 0) {
      returned("properties", device,
               std::to_string(all.total_memory) + " bytes, " +
                   std::to_string(all.multi_processor_count) + " processors and the capability " +
                   std::to_string(all.major) + "." + std::to_string(all.minor));
    }
    return all;
  }

  /// All names are UTF-8.
  static void save_metadata(const at::Tensor& tensor, TensorMetadata& metadata,
                            int device) requires HasMetadata<Runtime> {
    call("save_metadata", device, [&] { Runtime::save_metadata(tensor, metadata); });
    for (const auto& [name, value] : metadata) {
      if (const std::string clean = as_utf8(name); clean != name) {
        returned("save_metadata", device, "the name `" + clean + "`, which is not UTF-8,");
      }
    }
  }

  static void load_metadata(const at::Tensor& tensor, TensorMetadata& metadata,
                            int device) requires HasMetadata<Runtime> {
    call("load_metadata", device, [&] { Runtime::load_metadata(tensor, metadata); });
  }

 protected:
  static constexpr int kNone = -1;  ///< for functions that do not belong to one device

  static DriverCall name_of(const char* function, int device) {
    return {c10::demangle_type<Runtime>(), function, device};
  }

  template <class Call>
  static auto call(const char* function, int device, const Call& call) {
    try {
      return call();
    } catch (...) {
      raise_thrown(name_of(function, device));
    }
  }

  /// Calls a function that must not throw.
  template <class Call>
  static void call_only(const char* function, int device, const char* consequence,
                        const Call& call) noexcept {
    try {
      call();
    } catch (...) {
      warn_of_thrown(name_of(function, device), consequence);
    }
  }

  [[noreturn]] C10_NOINLINE static void returned(const char* function, int device,
                                                 const std::string& what) {
    raise_returned(name_of(function, device), what);
  }

 private:
  static constexpr std::size_t kMostBytes = std::numeric_limits<std::int64_t>::max();

  template <class Call>
  static void* checked_memory(const char* function, std::size_t bytes, int device,
                              const Call& allocate) {
    void* const pointer = call(function, device, [&]() -> void* {
      try {
        return allocate();
      } catch (const std::bad_alloc&) {
        return nullptr;
      } catch (const c10::OutOfMemoryError&) {
        return nullptr;
      }
    });
    if (pointer == nullptr) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (address % alignof(std::max_align_t) != 0) {
      returned(function, device, "memory that is not aligned for every type of number");
    }
    if (!memory().add(device, pointer, bytes)) {
      returned(function, device, "memory that overlaps memory that is already allocated");
    }
    return pointer;
  }

  static AllocatedMemory& memory() {
    // Memory may be freed after static destructors.
    static auto* const memory = new AllocatedMemory;
    return *memory;
  }
};

}  // namespace backendkit
