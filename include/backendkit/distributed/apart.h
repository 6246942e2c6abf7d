// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <backendkit/distributed/c10d.h>

namespace backendkit {

/// Whether two tensors share memory; those that are not dense do not count, for they get dense
/// copies.
inline bool overlap(const at::Tensor& one, const at::Tensor& other) {
  if (!one.has_storage() || !other.has_storage()) return false;
  const auto begin = [](const at::Tensor& tensor) {
    return static_cast<const char*>(tensor.const_data_ptr());
  };
  const auto end = [&](const at::Tensor& tensor) { return begin(tensor) + tensor.nbytes(); };
  const std::less<const char*> before;
  return before(begin(one), end(other)) && before(begin(other), end(one));
}

/// An input of a collective, or a copy of it, on the current stream, if it overlaps an output: a
/// part of an output may be written before all of the input is read.
inline at::Tensor apart(const at::Tensor& input, const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) {
    if (overlap(input, output)) return input.detach().clone();
  }
  return input;
}

/// Whether a tensor is the part of a whole that belongs to a rank.
inline bool is_part(const at::Tensor& part, const at::Tensor& whole, int rank) {
  if (!part.has_storage() || !whole.has_storage()) return false;
  const std::size_t begin = static_cast<std::size_t>(rank) * part.nbytes();
  return part.const_data_ptr() == static_cast<const char*>(whole.const_data_ptr()) + begin;
}

/// Whether a tensor begins where another one begins.
inline bool is_there(const at::Tensor& one, const at::Tensor& other) {
  return is_part(one, other, 0);
}

/// `apart` for an input that goes to a rank's part of the output, where it may be already.
inline at::Tensor apart_unless_part(const at::Tensor& input, const at::Tensor& output, int rank) {
  return is_part(input, output, rank) ? input : apart(input, {output});
}

/// `apart` for inputs of which only the one of rank `own` goes to the output, where it may be
/// already.
inline std::vector<at::Tensor> all_apart(std::vector<at::Tensor> inputs, const at::Tensor& output,
                                         int own) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool there = static_cast<int>(i) == own && is_there(inputs[i], output);
    if (!there) inputs[i] = apart(inputs[i], {output});
  }
  return inputs;
}

/// `apart` for an input that goes to the output `own`, where it may be already.
inline at::Tensor apart_unless_own(const at::Tensor& input, const std::vector<at::Tensor>& outputs,
                                   int own) {
  const bool there = is_there(input, outputs[static_cast<std::size_t>(own)]);
  return there ? input : apart(input, outputs);
}

}  // namespace backendkit
