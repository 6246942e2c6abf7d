// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <backendkit/collectives.h>
#include <backendkit/runtime.h>

namespace backendkit {

// Whether a Runtime has a function of that name, with any signature.
#define BACKENDKIT_RUNTIME_HAS(function) (requires { &Runtime::function; })

/// Fails to compile if an optional function has a wrong signature, and shows the expected one;
/// fails also if a group is incomplete.
template <class Runtime>
constexpr bool check_optional_functions() {
#define BACKENDKIT_CHECK_OPTIONAL(concept_, function, signature)        \
  static_assert(!BACKENDKIT_RUNTIME_HAS(function) || concept_<Runtime>, \
                "Runtime::" #function " must be: static " signature)
  BACKENDKIT_CHECK_OPTIONAL(HasCreateStream, create_stream,
                            "backendkit::StreamHandle create_stream(int device, int priority)");
  BACKENDKIT_CHECK_OPTIONAL(HasSynchronizeStream, synchronize_stream,
                            "void synchronize_stream(backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasQueryStream, query_stream,
                            "bool query_stream(backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasCreateEvent, create_event,
                            "backendkit::EventHandle create_event(int device, bool timing)");
  BACKENDKIT_CHECK_OPTIONAL(HasDestroyEvent, destroy_event,
                            "void destroy_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasRecordEvent, record_event,
                            "void record_event(backendkit::EventHandle event, "
                            "backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasWaitEvent, wait_event,
                            "void wait_event(backendkit::StreamHandle stream, "
                            "backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasQueryEvent, query_event,
                            "bool query_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasSynchronizeEvent, synchronize_event,
                            "void synchronize_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasElapsedMs, elapsed_ms,
                            "double elapsed_ms(backendkit::EventHandle start, "
                            "backendkit::EventHandle end, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasMemoryInfo, memory_info,
                            "backendkit::MemoryInfo memory_info(int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasAllocateHost, allocate_host,
                            "void* allocate_host(std::size_t bytes)");
  BACKENDKIT_CHECK_OPTIONAL(HasDeallocateHost, deallocate_host,
                            "void deallocate_host(void* pointer, std::size_t bytes)");
  BACKENDKIT_CHECK_OPTIONAL(HasIsHostPointer, is_host_pointer,
                            "bool is_host_pointer(const void* pointer)");
  BACKENDKIT_CHECK_OPTIONAL(HasCanAccessPeer, can_access_peer,
                            "bool can_access_peer(int device, int peer)");
  BACKENDKIT_CHECK_OPTIONAL(HasCopyPeer, copy_peer,
                            "void copy_peer(void* dst, int dst_device, const void* src, "
                            "int src_device, std::size_t bytes, backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasBeginCapture, begin_capture,
                            "void begin_capture(backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasEndCapture, end_capture,
                            "backendkit::GraphHandle end_capture("
                            "backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasInstantiateGraph, instantiate_graph,
                            "void instantiate_graph(backendkit::GraphHandle graph, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasReplayGraph, replay_graph,
                            "void replay_graph(backendkit::GraphHandle graph, "
                            "backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasDestroyGraph, destroy_graph,
                            "void destroy_graph(backendkit::GraphHandle graph, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasCopyElements, copy_elements,
                            "bool copy_elements(const at::Tensor& src, const at::Tensor& dst)");
  BACKENDKIT_CHECK_OPTIONAL(HasProperties, properties,
                            "backendkit::DeviceProperties properties(int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasSaveMetadata, save_metadata,
                            "void save_metadata(const at::Tensor& tensor, "
                            "backendkit::TensorMetadata& metadata)");
  BACKENDKIT_CHECK_OPTIONAL(HasLoadMetadata, load_metadata,
                            "void load_metadata(const at::Tensor& tensor, "
                            "backendkit::TensorMetadata& metadata)");
  BACKENDKIT_CHECK_OPTIONAL(HasCommunicatorId, communicator_id, "std::string communicator_id()");
  BACKENDKIT_CHECK_OPTIONAL(HasCreateCommunicator, create_communicator,
                            "backendkit::CommunicatorHandle create_communicator(const "
                            "std::string& id, int rank, int size, int device, "
                            "std::chrono::milliseconds timeout)");
  BACKENDKIT_CHECK_OPTIONAL(HasDestroyCommunicator, destroy_communicator,
                            "void destroy_communicator(backendkit::CommunicatorHandle "
                            "communicator, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasAbortCommunicator, abort_communicator,
                            "void abort_communicator(backendkit::CommunicatorHandle "
                            "communicator, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasCommunicatorError, communicator_error,
                            "std::string communicator_error(backendkit::CommunicatorHandle "
                            "communicator, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasAllReduce, all_reduce,
                            "bool all_reduce(void* data, std::size_t count, "
                            "backendkit::NumberType type, backendkit::Reduce reduce, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasReduceScatter, reduce_scatter,
                            "bool reduce_scatter(void* dst, const void* src, std::size_t "
                            "count, backendkit::NumberType type, backendkit::Reduce reduce, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasAllGather, all_gather,
                            "void all_gather(void* dst, const void* src, std::size_t bytes, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasBroadcast, broadcast,
                            "void broadcast(void* data, std::size_t bytes, int root, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasSend, send,
                            "void send(const void* src, std::size_t bytes, int peer, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasRecv, recv,
                            "void recv(void* dst, std::size_t bytes, int peer, "
                            "backendkit::CommunicatorHandle communicator, "
                            "backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasBeginGroup, begin_group, "void begin_group()");
  BACKENDKIT_CHECK_OPTIONAL(HasEndGroup, end_group, "void end_group()");
#undef BACKENDKIT_CHECK_OPTIONAL
  constexpr bool any_stream =
      HasCreateStream<Runtime> || HasSynchronizeStream<Runtime> || HasQueryStream<Runtime>;
  static_assert(
      !any_stream || HasStreams<Runtime>,
      "a Runtime with streams must implement create_stream, synchronize_stream and query_stream");
  constexpr bool any_event = HasCreateEvent<Runtime> || HasDestroyEvent<Runtime> ||
                             HasRecordEvent<Runtime> || HasWaitEvent<Runtime> ||
                             HasQueryEvent<Runtime> || HasSynchronizeEvent<Runtime>;
  static_assert(!any_event || HasEvents<Runtime>,
                "a Runtime with events must implement create_event, destroy_event, record_event, "
                "wait_event, query_event and synchronize_event");
  constexpr bool any_pinned =
      HasAllocateHost<Runtime> || HasDeallocateHost<Runtime> || HasIsHostPointer<Runtime>;
  static_assert(!any_pinned || HasPinnedMemory<Runtime>,
                "a Runtime with pinned memory must implement allocate_host, deallocate_host and "
                "is_host_pointer");
  static_assert(HasCanAccessPeer<Runtime> == HasCopyPeer<Runtime>,
                "a Runtime with peer copies must implement can_access_peer and copy_peer");
  constexpr bool any_graph = HasBeginCapture<Runtime> || HasEndCapture<Runtime> ||
                             HasInstantiateGraph<Runtime> || HasReplayGraph<Runtime> ||
                             HasDestroyGraph<Runtime>;
  static_assert(!any_graph || HasGraphs<Runtime>,
                "a Runtime with graphs must implement begin_capture, end_capture, "
                "instantiate_graph, replay_graph, destroy_graph and the functions for streams");
  constexpr bool any_collective =
      HasCommunicatorId<Runtime> || HasCreateCommunicator<Runtime> ||
      HasDestroyCommunicator<Runtime> || HasAbortCommunicator<Runtime> ||
      HasCommunicatorError<Runtime> || HasAllReduce<Runtime> || HasReduceScatter<Runtime> ||
      HasAllGather<Runtime> || HasBroadcast<Runtime> || HasSend<Runtime> || HasRecv<Runtime>;
  static_assert(
      !any_collective || (HasCommunicators<Runtime> && HasStreams<Runtime> && HasEvents<Runtime>),
      "a Runtime with collectives must implement communicator_id, create_communicator, "
      "destroy_communicator, abort_communicator, communicator_error and the functions "
      "for streams and events");
  constexpr bool any_message =
      HasSend<Runtime> || HasRecv<Runtime> || HasBeginGroup<Runtime> || HasEndGroup<Runtime>;
  static_assert(!any_message || HasMessages<Runtime>,
                "a Runtime with messages must implement send, recv, begin_group and end_group");
  static_assert(HasSaveMetadata<Runtime> == HasLoadMetadata<Runtime>,
                "a Runtime with metadata must implement save_metadata and load_metadata");
  static_assert(
      !HasElapsedMs<Runtime> || HasEvents<Runtime>,
      "a Runtime with elapsed_ms must also implement the functions for events: create_event "
      "and the others");
  return true;
}

#undef BACKENDKIT_RUNTIME_HAS

/// Fails to compile if a Runtime lacks a required function, and shows the expected signature.
template <class Runtime>
constexpr bool check_runtime() {
  static_assert(HasDeviceCount<Runtime>, "Runtime needs: static int device_count()");
  static_assert(HasCurrentDevice<Runtime>, "Runtime needs: static int current_device()");
  static_assert(HasSetDevice<Runtime>, "Runtime needs: static void set_device(int device)");
  static_assert(HasAllocate<Runtime>,
                "Runtime needs: static void* allocate(std::size_t bytes, int device)");
  static_assert(
      HasDeallocate<Runtime>,
      "Runtime needs: static void deallocate(void* pointer, std::size_t bytes, int device)");
  static_assert(HasCopy<Runtime>,
                "Runtime needs: static void copy(void* dst, const void* src, std::size_t bytes, "
                "backendkit::CopyKind kind, backendkit::StreamHandle stream)");
  static_assert(HasSynchronize<Runtime>, "Runtime needs: static void synchronize(int device)");
  return check_optional_functions<Runtime>();
}

}  // namespace backendkit
