#pragma once

#include <cstddef>
#include <functional>

#include <backendkit/runtime.h>

#include "simulator.h"

namespace kite {

/// The functions that PyTorch needs from the device. These simulate two devices whose streams are
/// threads; replace the body of each one in runtime.cpp with a call to your driver.
/// <backendkit/runtime.h> says what each function must do.
struct Runtime {
  static int device_count();
  static int current_device();
  static void set_device(int device);

  static void* allocate(std::size_t bytes, int device);
  static void deallocate(void* pointer, std::size_t bytes, int device);

  static void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream);
  static void synchronize(int device);

  // The rest is optional. If you leave out a group, using its feature raises an error that names
  // the missing functions.

  static constexpr bool host_accessible = simulator::kUnified;

  static backendkit::StreamHandle create_stream(int device, int priority);
  static void synchronize_stream(backendkit::StreamHandle stream, int device);
  static bool query_stream(backendkit::StreamHandle stream, int device);

  static backendkit::EventHandle create_event(int device, bool timing);
  static void destroy_event(backendkit::EventHandle event, int device);
  static void record_event(backendkit::EventHandle event, backendkit::StreamHandle stream,
                           int device);
  static void wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event,
                         int device);
  static bool query_event(backendkit::EventHandle event, int device);
  static void synchronize_event(backendkit::EventHandle event, int device);
  static double elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int device);

  static backendkit::MemoryInfo memory_info(int device);

  static void* allocate_host(std::size_t bytes);
  static void deallocate_host(void* pointer, std::size_t bytes);
  static bool is_host_pointer(const void* pointer);

  static bool can_access_peer(int device, int peer);
  static void copy_peer(void* dst, int dst_device, const void* src, int src_device,
                        std::size_t bytes, backendkit::StreamHandle stream);

  static void begin_capture(backendkit::StreamHandle stream, int device);
  static backendkit::GraphHandle end_capture(backendkit::StreamHandle stream, int device);
  static void instantiate_graph(backendkit::GraphHandle graph, int device);
  static void replay_graph(backendkit::GraphHandle graph, backendkit::StreamHandle stream,
                           int device);
  static void destroy_graph(backendkit::GraphHandle graph, int device);

  static backendkit::DeviceProperties properties(int device);
};

/// Queues a kernel on the current device's current stream, as your driver's launch function would:
/// it runs after the work that is already queued, and this function does not wait for it. Pass the
/// kernel pointers and numbers, not tensors; their memory stays allocated until the kernel has
/// completed. It must not throw.
void launch(std::function<void()> kernel);

}  // namespace kite
