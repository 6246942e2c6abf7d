// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <backendkit/collectives.h>
#include <backendkit/device/driver.h>

namespace backendkit {

/// A Runtime's collectives, as the file of the glue with process groups calls them: it does not
/// instantiate the Runtime. The functions are those of the Runtime, but for the device to name in
/// an error; what they throw is a PyTorch error. Null is a function that the Runtime does not have.
struct DriverCollectives {
  std::string (*id)() = nullptr;
  CommunicatorHandle (*create)(const std::string& id, int rank, int size, int device,
                               std::chrono::milliseconds timeout) = nullptr;
  void (*destroy)(CommunicatorHandle communicator, int device) noexcept = nullptr;
  void (*abort)(CommunicatorHandle communicator, int device) noexcept = nullptr;
  std::string (*error)(CommunicatorHandle communicator, int device) = nullptr;
  bool (*all_reduce)(void* data, std::size_t count, NumberType type, Reduce reduce,
                     CommunicatorHandle communicator, StreamHandle stream, int device) = nullptr;
  bool (*reduce_scatter)(void* dst, const void* src, std::size_t count, NumberType type,
                         Reduce reduce, CommunicatorHandle communicator, StreamHandle stream,
                         int device) = nullptr;
  void (*all_gather)(void* dst, const void* src, std::size_t bytes, CommunicatorHandle communicator,
                     StreamHandle stream, int device) = nullptr;
  void (*broadcast)(void* data, std::size_t bytes, int root, CommunicatorHandle communicator,
                    StreamHandle stream, int device) = nullptr;
  void (*send)(const void* src, std::size_t bytes, int peer, CommunicatorHandle communicator,
               StreamHandle stream, int device) = nullptr;
  void (*recv)(void* dst, std::size_t bytes, int peer, CommunicatorHandle communicator,
               StreamHandle stream, int device) = nullptr;
  void (*begin_group)(int device) = nullptr;
  void (*end_group)(int device) = nullptr;
};

/// Calls a Runtime's collectives, as Driver calls its other functions.
template <class Runtime>
class CollectiveDriver : private Driver<Runtime> {
 public:
  /// Null if the Runtime has no communicators.
  static const DriverCollectives* table() {
    if constexpr (HasCommunicators<Runtime>) {
      static constexpr DriverCollectives all = make_table();
      return &all;
    } else {
      return nullptr;
    }
  }

 private:
  using Base = Driver<Runtime>;
  using Base::call;
  using Base::call_only;
  using Base::returned;

  static constexpr std::size_t kMostBytesOfId = 1000;

  static std::string id() requires HasCommunicators<Runtime> {
    std::string made =
        call("communicator_id", Base::kNone, [] { return Runtime::communicator_id(); });
    if (made.size() > kMostBytesOfId) {
      returned("communicator_id", Base::kNone, std::to_string(made.size()) + " bytes");
    }
    return made;
  }

  static CommunicatorHandle create(const std::string& id, int rank, int size, int device,
                                   std::chrono::milliseconds timeout) requires
      HasCommunicators<Runtime> {
    CommunicatorHandle const made = call("create_communicator", device, [&] {
      return Runtime::create_communicator(id, rank, size, device, timeout);
    });
    if (made == nullptr) returned("create_communicator", device, "null");
    return made;
  }

  static void destroy(CommunicatorHandle communicator,
                      int device) noexcept requires HasCommunicators<Runtime> {
    call_only("destroy_communicator", device, "the communicator is leaked",
              [&] { Runtime::destroy_communicator(communicator, device); });
  }

  static void abort(CommunicatorHandle communicator,
                    int device) noexcept requires HasCommunicators<Runtime> {
    call_only("abort_communicator", device, "streams of the device may wait for ever",
              [&] { Runtime::abort_communicator(communicator, device); });
  }

  static std::string error(CommunicatorHandle communicator,
                           int device) requires HasCommunicators<Runtime> {
    return as_utf8(call("communicator_error", device,
                        [&] { return Runtime::communicator_error(communicator, device); }));
  }

  static constexpr DriverCollectives make_table() requires HasCommunicators<Runtime> {
    DriverCollectives all{
        .id = &id, .create = &create, .destroy = &destroy, .abort = &abort, .error = &error};
    if constexpr (HasAllReduce<Runtime>) {
      all.all_reduce = [](void* data, std::size_t count, NumberType type, Reduce reduce,
                          CommunicatorHandle communicator, StreamHandle stream, int device) {
        return call("all_reduce", device, [&] {
          return Runtime::all_reduce(data, count, type, reduce, communicator, stream);
        });
      };
    }
    if constexpr (HasReduceScatter<Runtime>) {
      all.reduce_scatter = [](void* dst, const void* src, std::size_t count, NumberType type,
                              Reduce reduce, CommunicatorHandle communicator, StreamHandle stream,
                              int device) {
        return call("reduce_scatter", device, [&] {
          return Runtime::reduce_scatter(dst, src, count, type, reduce, communicator, stream);
        });
      };
    }
    if constexpr (HasAllGather<Runtime>) {
      all.all_gather = [](void* dst, const void* src, std::size_t bytes,
                          CommunicatorHandle communicator, StreamHandle stream, int device) {
        call("all_gather", device,
             [&] { Runtime::all_gather(dst, src, bytes, communicator, stream); });
      };
    }
    if constexpr (HasBroadcast<Runtime>) {
      all.broadcast = [](void* data, std::size_t bytes, int root, CommunicatorHandle communicator,
                         StreamHandle stream, int device) {
        call("broadcast", device,
             [&] { Runtime::broadcast(data, bytes, root, communicator, stream); });
      };
    }
    if constexpr (HasMessages<Runtime>) {
      all.send = [](const void* src, std::size_t bytes, int peer, CommunicatorHandle communicator,
                    StreamHandle stream, int device) {
        call("send", device, [&] { Runtime::send(src, bytes, peer, communicator, stream); });
      };
      all.recv = [](void* dst, std::size_t bytes, int peer, CommunicatorHandle communicator,
                    StreamHandle stream, int device) {
        call("recv", device, [&] { Runtime::recv(dst, bytes, peer, communicator, stream); });
      };
      all.begin_group = [](int device) {
        call("begin_group", device, [] { Runtime::begin_group(); });
      };
      all.end_group = [](int device) { call("end_group", device, [] { Runtime::end_group(); }); };
    }
    return all;
  }
};

}  // namespace backendkit
