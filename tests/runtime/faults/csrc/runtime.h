// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulated.h"

namespace at {
class Tensor;
}

namespace foo {

/// The starter project's Runtime, each function of which can be told to fail: see faulty.cpp.
struct Runtime {
  static int device_count();
  static int current_device();
  static void set_device(int device);

  static void* allocate(std::size_t bytes, int device);
  static void deallocate(void* pointer, std::size_t bytes, int device);

  static void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream);
  static void synchronize(int device);

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

  static bool copy_elements(const at::Tensor& src, const at::Tensor& dst);

  static backendkit::DeviceProperties properties(int device);

  static std::string communicator_id();
  static backendkit::CommunicatorHandle create_communicator(const std::string& id, int rank,
                                                            int size, int device,
                                                            std::chrono::milliseconds timeout);
  static void destroy_communicator(backendkit::CommunicatorHandle communicator, int device);
  static void abort_communicator(backendkit::CommunicatorHandle communicator, int device);
  static std::string communicator_error(backendkit::CommunicatorHandle communicator, int device);

  static bool all_reduce(void* data, std::size_t count, backendkit::NumberType type,
                         backendkit::Reduce reduce, backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream);
  static bool reduce_scatter(void* dst, const void* src, std::size_t count,
                             backendkit::NumberType type, backendkit::Reduce reduce,
                             backendkit::CommunicatorHandle communicator,
                             backendkit::StreamHandle stream);
  static void all_gather(void* dst, const void* src, std::size_t bytes,
                         backendkit::CommunicatorHandle communicator,
                         backendkit::StreamHandle stream);
  static void broadcast(void* data, std::size_t bytes, int root,
                        backendkit::CommunicatorHandle communicator,
                        backendkit::StreamHandle stream);
  static void send(const void* src, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream);
  static void recv(void* dst, std::size_t bytes, int peer,
                   backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream);
  static void begin_group();
  static void end_group();

  static void save_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata);
  static void load_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata);
};

}  // namespace foo
