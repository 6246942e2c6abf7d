// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <string>

#include <backendkit/runtime.h>

namespace backendkit {

/// A group of processes, each with one device, that can do collectives.
using CommunicatorHandle = void*;

/// The numbers that a collective reduces.
enum class NumberType {
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64
};

/// How a collective makes one number of those of all ranks.
enum class Reduce { kSum, kAverage, kProduct, kMin, kMax, kBitAnd, kBitOr, kBitXor };

// The functions of a driver with collectives of its own, all optional. The first five make groups
// of processes, and must be there together. Of the others, what is missing is made of what is
// there, or goes through the host. All ranks of a group call the collectives for one communicator
// in the same order; for messages, only the two ranks of each call anything, and two ranks call
// `send` and `recv` for each other in the same order. Each rank calls from one thread at a time;
// only `abort_communicator` and `communicator_error` are called while another thread is in one of
// the others. Pointers are those of `allocate`. The work is queued on the stream, in order with its
// other work, and the function returns without waiting for it, or for the other ranks.

/// `std::string communicator_id()`: returns what the processes of a new group need to find each
/// other, at most 1,000 bytes. Called on rank 0 only; all ranks get it. Empty if the driver cannot
/// do collectives now; this group's collectives then go through the host.
template <class Runtime>
concept HasCommunicatorId = requires {
  { Runtime::communicator_id() } -> std::same_as<std::string>;
};

/// `backendkit::CommunicatorHandle create_communicator(const std::string& id, int rank, int size,
/// int device, std::chrono::milliseconds timeout)`: joins the group with that id as one of `size`
/// ranks, waits for the others, and returns the handle, never null. Throws if the others have not
/// come after `timeout`.
template <class Runtime>
concept HasCreateCommunicator = requires(const std::string& id, int rank, int size, int device,
                                         std::chrono::milliseconds timeout) {
  {
    Runtime::create_communicator(id, rank, size, device, timeout)
    } -> std::same_as<CommunicatorHandle>;
};

/// `void destroy_communicator(backendkit::CommunicatorHandle communicator, int device)`: frees a
/// communicator, all of whose work has completed or was aborted. Does not wait for other ranks.
/// Must not throw.
template <class Runtime>
concept HasDestroyCommunicator = requires(CommunicatorHandle communicator, int device) {
  { Runtime::destroy_communicator(communicator, device) } -> std::same_as<void>;
};

/// `void abort_communicator(backendkit::CommunicatorHandle communicator, int device)`: ends the
/// communicator's work, queued and running, with whatever results, so that streams go on. Called
/// when a collective has failed or takes too long. The other functions may still be called with the
/// communicator, until `destroy_communicator`, which always is. Must not throw.
template <class Runtime>
concept HasAbortCommunicator = requires(CommunicatorHandle communicator, int device) {
  { Runtime::abort_communicator(communicator, device) } -> std::same_as<void>;
};

/// `std::string communicator_error(backendkit::CommunicatorHandle communicator, int device)`:
/// returns why the communicator's work cannot go on, such as a rank that has ended, or an empty
/// string.
template <class Runtime>
concept HasCommunicatorError = requires(CommunicatorHandle communicator, int device) {
  { Runtime::communicator_error(communicator, device) } -> std::same_as<std::string>;
};

/// Collectives of the driver: `torch.distributed` without copies to the host. Needs the five
/// functions above, and those for streams and events.
template <class Runtime>
concept HasCommunicators = HasCommunicatorId<Runtime> && HasCreateCommunicator<Runtime> &&
    HasDestroyCommunicator<Runtime> && HasAbortCommunicator<Runtime> &&
    HasCommunicatorError<Runtime>;

/// `bool all_reduce(void* data, std::size_t count, backendkit::NumberType type, backendkit::Reduce
/// reduce, backendkit::CommunicatorHandle communicator, backendkit::StreamHandle stream)`: reduces
/// the numbers of all ranks in place. Returns false, and does nothing, if the driver has no such
/// reduction of this type, on all ranks alike.
template <class Runtime>
concept HasAllReduce = requires(void* data, std::size_t count, NumberType type, Reduce reduce,
                                CommunicatorHandle communicator, StreamHandle stream) {
  { Runtime::all_reduce(data, count, type, reduce, communicator, stream) } -> std::same_as<bool>;
};

/// `bool reduce_scatter(void* dst, const void* src, std::size_t count, backendkit::NumberType type,
/// backendkit::Reduce reduce, backendkit::CommunicatorHandle communicator,
/// backendkit::StreamHandle stream)`: `src` has `count` numbers for each rank; `dst` gets those for
/// this one, reduced. Returns false like `all_reduce`.
template <class Runtime>
concept HasReduceScatter = requires(void* dst, const void* src, std::size_t count, NumberType type,
                                    Reduce reduce, CommunicatorHandle communicator,
                                    StreamHandle stream) {
  {
    Runtime::reduce_scatter(dst, src, count, type, reduce, communicator, stream)
    } -> std::same_as<bool>;
};

/// `void all_gather(void* dst, const void* src, std::size_t bytes, backendkit::CommunicatorHandle
/// communicator, backendkit::StreamHandle stream)`: `dst` gets the `bytes` of each rank's `src`, in
/// the order of the ranks. `src` may be this rank's place in `dst`.
template <class Runtime>
concept HasAllGather = requires(void* dst, const void* src, std::size_t bytes,
                                CommunicatorHandle communicator, StreamHandle stream) {
  { Runtime::all_gather(dst, src, bytes, communicator, stream) } -> std::same_as<void>;
};

/// `void broadcast(void* data, std::size_t bytes, int root, backendkit::CommunicatorHandle
/// communicator, backendkit::StreamHandle stream)`: all ranks get the bytes of rank `root`.
template <class Runtime>
concept HasBroadcast = requires(void* data, std::size_t bytes, int root,
                                CommunicatorHandle communicator, StreamHandle stream) {
  { Runtime::broadcast(data, bytes, root, communicator, stream) } -> std::same_as<void>;
};

/// `void send(const void* src, std::size_t bytes, int peer, backendkit::CommunicatorHandle
/// communicator, backendkit::StreamHandle stream)`: sends bytes to a rank, which calls `recv`;
/// also to this one, if both are in one group.
template <class Runtime>
concept HasSend = requires(const void* src, std::size_t bytes, int peer,
                           CommunicatorHandle communicator, StreamHandle stream) {
  { Runtime::send(src, bytes, peer, communicator, stream) } -> std::same_as<void>;
};

/// `void recv(void* dst, std::size_t bytes, int peer, backendkit::CommunicatorHandle communicator,
/// backendkit::StreamHandle stream)`: receives bytes from a rank, which calls `send`.
template <class Runtime>
concept HasRecv = requires(void* dst, std::size_t bytes, int peer, CommunicatorHandle communicator,
                           StreamHandle stream) {
  { Runtime::recv(dst, bytes, peer, communicator, stream) } -> std::same_as<void>;
};

/// `void begin_group()`: this thread's calls of `send` and `recv` until `end_group` are one piece
/// of work, in which no message waits for another one.
template <class Runtime>
concept HasBeginGroup = requires {
  { Runtime::begin_group() } -> std::same_as<void>;
};

/// `void end_group()`: queues the messages since `begin_group`; there may be none.
template <class Runtime>
concept HasEndGroup = requires {
  { Runtime::end_group() } -> std::same_as<void>;
};

/// Messages of the driver: gather, scatter, all_to_all, and PyTorch's own messages in groups with a
/// `device_id`, without copies to the host. Needs the four functions above.
template <class Runtime>
concept HasMessages =
    HasSend<Runtime> && HasRecv<Runtime> && HasBeginGroup<Runtime> && HasEndGroup<Runtime>;

}  // namespace backendkit
