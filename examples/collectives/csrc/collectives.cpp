// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include "shared_collectives.h"

namespace foo {

namespace {

simulator::Communicator& communicator_of(backendkit::CommunicatorHandle communicator) {
  return *static_cast<simulator::Communicator*>(communicator);
}

/// Collectives are never on the default stream.
simulator::Stream& stream_of(backendkit::StreamHandle stream) {
  return simulator::stream_of(stream, 0);
}

}  // namespace

std::string Collectives::communicator_id() { return simulator::communicator_id(); }

backendkit::CommunicatorHandle Collectives::create_communicator(const std::string& id, int rank,
                                                                int size, int,
                                                                std::chrono::milliseconds timeout) {
  return simulator::create_communicator(id, rank, size, timeout);
}

void Collectives::destroy_communicator(backendkit::CommunicatorHandle communicator, int) {
  simulator::destroy(&communicator_of(communicator));
}

void Collectives::abort_communicator(backendkit::CommunicatorHandle communicator, int) {
  simulator::abort(communicator_of(communicator));
}

std::string Collectives::communicator_error(backendkit::CommunicatorHandle communicator, int) {
  return simulator::error_of(communicator_of(communicator));
}

bool Collectives::all_reduce(void* data, std::size_t count, backendkit::NumberType type,
                             backendkit::Reduce reduce, backendkit::CommunicatorHandle communicator,
                             backendkit::StreamHandle stream) {
  if (!simulator::can_reduce(type)) return false;
  void* const numbers = simulator::inside(data, count * simulator::bytes_of(type), -1);
  simulator::all_reduce(communicator_of(communicator), stream_of(stream), numbers, count, type,
                        reduce);
  return true;
}

bool Collectives::reduce_scatter(void* dst, const void* src, std::size_t count,
                                 backendkit::NumberType type, backendkit::Reduce reduce,
                                 backendkit::CommunicatorHandle communicator,
                                 backendkit::StreamHandle stream) {
  if (!simulator::can_reduce(type)) return false;
  void* const part = simulator::inside(dst, count * simulator::bytes_of(type), -1);
  simulator::reduce_scatter(communicator_of(communicator), stream_of(stream), part,
                            simulator::inside(src, 1, -1), count, type, reduce);
  return true;
}

void Collectives::all_gather(void* dst, const void* src, std::size_t bytes,
                             backendkit::CommunicatorHandle communicator,
                             backendkit::StreamHandle stream) {
  simulator::all_gather(communicator_of(communicator), stream_of(stream),
                        simulator::inside(dst, bytes, -1), simulator::inside(src, bytes, -1),
                        bytes);
}

void Collectives::broadcast(void* data, std::size_t bytes, int root,
                            backendkit::CommunicatorHandle communicator,
                            backendkit::StreamHandle stream) {
  simulator::broadcast(communicator_of(communicator), stream_of(stream),
                       simulator::inside(data, bytes, -1), bytes, root);
}

void Collectives::send(const void* src, std::size_t bytes, int peer,
                       backendkit::CommunicatorHandle communicator,
                       backendkit::StreamHandle stream) {
  simulator::send(communicator_of(communicator), stream_of(stream),
                  simulator::inside(src, bytes, -1), bytes, peer);
}

void Collectives::recv(void* dst, std::size_t bytes, int peer,
                       backendkit::CommunicatorHandle communicator,
                       backendkit::StreamHandle stream) {
  simulator::recv(communicator_of(communicator), stream_of(stream),
                  simulator::inside(dst, bytes, -1), bytes, peer);
}

void Collectives::begin_group() { simulator::begin_group(); }

void Collectives::end_group() { simulator::end_group(); }

}  // namespace foo
