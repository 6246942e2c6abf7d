// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <backendkit/collectives.h>
#include <backendkit/runtime.h>

namespace backendkit {

/// A group of optional functions of a Runtime.
struct Capability {
  const char* name;       ///< its name in `torch.foo.capabilities()`
  bool there;             ///< whether the Runtime implements the group
  const char* functions;  ///< the functions that enable it
};

/// The groups of optional functions, in the order of runtime.h. Does not call the driver.
template <class Runtime>
std::vector<Capability> capabilities() {
  return {
      {"streams", HasStreams<Runtime>, "create_stream, synchronize_stream, query_stream"},
      {"events", HasEvents<Runtime>,
       "create_event, destroy_event, record_event, wait_event, query_event, synchronize_event"},
      {"timing", HasElapsedMs<Runtime>, "elapsed_ms"},
      {"memory_info", HasMemoryInfo<Runtime>, "memory_info"},
      {"pinned_memory", HasPinnedMemory<Runtime>,
       "allocate_host, deallocate_host, is_host_pointer"},
      {"peer", HasPeers<Runtime>, "can_access_peer, copy_peer"},
      {"graphs", HasGraphs<Runtime>,
       "begin_capture, end_capture, instantiate_graph, replay_graph, destroy_graph"},
      {"copy_elements", HasCopyElements<Runtime>, "copy_elements"},
      {"properties", HasProperties<Runtime>, "properties"},
      {"metadata", HasMetadata<Runtime>, "save_metadata, load_metadata"},
      {"communicators", HasCommunicators<Runtime>,
       "communicator_id, create_communicator, destroy_communicator, abort_communicator, "
       "communicator_error"},
      {"all_reduce", HasAllReduce<Runtime>, "all_reduce"},
      {"reduce_scatter", HasReduceScatter<Runtime>, "reduce_scatter"},
      {"all_gather", HasAllGather<Runtime>, "all_gather"},
      {"broadcast", HasBroadcast<Runtime>, "broadcast"},
      {"messages", HasMessages<Runtime>, "send, recv, begin_group, end_group"},
      {"host_accessible", may_be_host_accessible<Runtime>(), "host_accessible"},
  };
}

/// The same as columns of types that an operator can return: names, 0 or 1, functions.
template <class Runtime>
std::tuple<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::string>>
capability_table() {
  std::tuple<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::string>> table;
  for (const Capability& one : capabilities<Runtime>()) {
    std::get<0>(table).emplace_back(one.name);
    std::get<1>(table).push_back(one.there ? 1 : 0);
    std::get<2>(table).emplace_back(one.functions);
  }
  return table;
}

}  // namespace backendkit
