// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <backendkit/collectives.h>

namespace foo {

/// Functions of a Runtime for collectives, each of which calls your library in a real backend. Here
/// each process of a group has a simulated device, and they exchange data through shared memory.
/// <backendkit/collectives.h> says what the functions must do.
///
/// With FOO_SIMULATOR_COLLECTIVES=0 in the environment, collectives go through the host.
struct Collectives {
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
};

}  // namespace foo
