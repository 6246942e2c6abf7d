// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <backendkit/collectives.h>

#include "simulator.h"

/// What collectives.cpp calls in place of a library of collectives.
namespace foo::simulator {

class Communicator;

/// The name of new shared memory; empty if there are to be no collectives.
std::string communicator_id();

/// Throws std::runtime_error if there is no shared memory, or if the others do not come in time.
Communicator* create_communicator(const std::string& id, int rank, int size,
                                  std::chrono::milliseconds timeout);
void destroy(Communicator* communicator);
void abort(Communicator& communicator);
std::string error_of(Communicator& communicator);

/// False for numbers with 16 bits, which the simulator cannot reduce.
bool can_reduce(backendkit::NumberType type);

/// `part` has `count` numbers of a rank: all of them, or those that this rank gets of the `all` of
/// each rank.
void all_reduce(Communicator& communicator, Stream& stream, void* part, std::size_t count,
                backendkit::NumberType type, backendkit::Reduce reduce);
void reduce_scatter(Communicator& communicator, Stream& stream, void* part, const void* all,
                    std::size_t count, backendkit::NumberType type, backendkit::Reduce reduce);
void all_gather(Communicator& communicator, Stream& stream, void* all, const void* part,
                std::size_t bytes);
void broadcast(Communicator& communicator, Stream& stream, void* data, std::size_t bytes, int root);

/// Between `begin_group` and `end_group`, the messages of this thread are collected.
void send(Communicator& communicator, Stream& stream, const void* data, std::size_t bytes,
          int peer);
void recv(Communicator& communicator, Stream& stream, void* data, std::size_t bytes, int peer);
void begin_group();
void end_group();

std::size_t bytes_of(backendkit::NumberType type);

}  // namespace foo::simulator
