// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Whether a tensor begins where another one begins.
inline bool is_there(const at::Tensor& one, const at::Tensor& other) {
  return one.has_storage() && other.has_storage() && one.const_data_ptr() == other.const_data_ptr();
}

/// Whether a tensor is the part of a whole that belongs to a rank.
inline bool is_part(const at::Tensor& part, const at::Tensor& whole, int rank) {
  if (!part.has_storage() || !whole.has_storage()) return false;
  const std::size_t begin = static_cast<std::size_t>(rank) * part.nbytes();
  return part.const_data_ptr() == static_cast<const char*>(whole.const_data_ptr()) + begin;
}

/// `apart` for an input that goes to the output `own`, where it may be already.
inline at::Tensor apart_unless_own(const at::Tensor& input, const std::vector<at::Tensor>& outputs,
                                   int own) {
  const bool there = is_there(input, outputs[static_cast<std::size_t>(own)]);
  return there ? input : apart(input, outputs);
}

}  // namespace backendkit
