// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <backendkit/distributed/c10d.h>

namespace backendkit {

/// Whether two dense tensors share memory.
inline bool overlap(const at::Tensor& one, const at::Tensor& other) {
  const auto begin = [](const at::Tensor& tensor) {
    return static_cast<const char*>(tensor.const_data_ptr());
  };
  const auto end = [&](const at::Tensor& tensor) { return begin(tensor) + tensor.nbytes(); };
  const std::less<const char*> before;
  return before(begin(one), end(other)) && before(begin(other), end(one));
}

/// An input of a collective, or a copy of it if it overlaps an output: a part of an output may be
/// written before all of the input is read. All tensors are dense.
inline at::Tensor apart(const at::Tensor& input, const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) {
    if (overlap(input, output)) return input.clone();
  }
  return input;
}

/// The same for an input that goes to the output `own`, where it may be already.
inline at::Tensor apart_unless_own(const at::Tensor& input, const std::vector<at::Tensor>& outputs,
                                   int own) {
  const at::Tensor& place = outputs[static_cast<std::size_t>(own)];
  return place.const_data_ptr() == input.const_data_ptr() ? input : apart(input, outputs);
}

}  // namespace backendkit
