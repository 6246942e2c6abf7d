// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <c10/util/ScopeExit.h>

#include <backendkit/distributed/driver_group.h>

namespace backendkit {

/// Tensors as the driver's functions take them, and its messages.
class DriverData {
 protected:
  using Tensors = std::vector<at::Tensor>;
  using Sizes = std::vector<std::int64_t>;
  using Place = DriverGroup::Place;

  /// Bytes on the device.
  struct Part {
    char* data = nullptr;
    std::size_t bytes = 0;
  };
  using Parts = std::vector<Part>;

  static at::Tensor dense(const at::Tensor& tensor) { return tensor.detach().contiguous(); }

  static Tensors all_dense(const Tensors& tensors) {
    Tensors all;
    for (const at::Tensor& one : tensors) all.push_back(dense(one));
    return all;
  }

  /// Where the driver writes a result: the tensor, or other memory if it is not dense.
  static at::Tensor room(const at::Tensor& tensor) {
    return tensor.is_contiguous() ? tensor.detach() : at::empty(tensor.sizes(), tensor.options());
  }

  static Tensors rooms(const Tensors& tensors) {
    Tensors all;
    for (const at::Tensor& one : tensors) all.push_back(room(one));
    return all;
  }

  /// Copies a result to its tensor, if it is not there: on the stream, or later if the host would
  /// have to wait for the stream.
  static void bring(const Place& place, const at::Tensor& tensor, const at::Tensor& result) {
    if (tensor.const_data_ptr() == result.const_data_ptr()) return;
    if (tensor.is_contiguous()) {
      tensor.detach().copy_(result);
    } else if (!device_facts().copy_elements(result, tensor)) {
      place.late.push_back({tensor.detach(), result});
    }
  }

  static void bring(const Place& place, const Tensors& tensors, const Tensors& results) {
    for (std::size_t i = 0; i < tensors.size(); ++i) bring(place, tensors[i], results[i]);
  }

  static Part whole(const at::Tensor& tensor) {
    return {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()};
  }

  static Parts wholes(const Tensors& tensors) {
    Parts all;
    for (const at::Tensor& one : tensors) all.push_back(whole(one));
    return all;
  }

  static Parts parts(const at::Tensor& tensor, const Sizes& sizes) {
    Parts all;
    char* data = whole(tensor).data;
    for (const std::int64_t size : sizes) {
      all.push_back({data, static_cast<std::size_t>(size)});
      data += size;
    }
    return all;
  }

  static void send(const Place& place, const Part& from, int peer) {
    if (from.bytes == 0) return;
    place.driver.send(from.data, from.bytes, peer, place.communicator, place.stream, place.device);
  }

  static void receive(const Place& place, const Part& to, int peer) {
    if (to.bytes == 0) return;
    place.driver.recv(to.data, to.bytes, peer, place.communicator, place.stream, place.device);
  }

  /// The messages that `run` begins do not wait for each other.
  template <class Run>
  static void in_group(const Place& place, const Run& run) {
    place.driver.begin_group(place.device);
    // Also after an error: a group that stays open would swallow what this thread sends later.
    auto end = c10::make_scope_exit([&] {
      try {
        place.driver.end_group(place.device);
      } catch (const c10::Error&) {  // the first error is the one to tell
      }
    });
    run();
    end.release();
    place.driver.end_group(place.device);
  }
};

}  // namespace backendkit
