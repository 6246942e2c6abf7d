// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

namespace backendkit {

/// The positions of the arguments that tell which device a kernel works on, best first. Scalars on
/// the CPU, undefined tensors and empty lists among them tell nothing, so the next one is asked.
template <std::size_t... positions>
struct DeviceOf {};

namespace kernel_detail {

using MaybeDevice = std::optional<c10::Device>;

/// Our device in an argument of a kernel; nothing for any other device, and for "foo" without an
/// index, which means the current device.
inline MaybeDevice ours(c10::Device device) {
  return device.is_privateuseone() && device.has_index() ? MaybeDevice(device) : std::nullopt;
}

inline MaybeDevice device_in(const at::Tensor& tensor) {
  return tensor.defined() ? ours(tensor.device()) : std::nullopt;
}

inline MaybeDevice device_in(const c10::Device& device) {
  return ours(device);
}

template <class Value>
MaybeDevice device_in(const std::optional<Value>& value) {
  return value.has_value() ? device_in(*value) : std::nullopt;
}

template <class Element, class List>
MaybeDevice device_in_list(const List& list) {
  for (const Element& element : list) {
    if (const MaybeDevice device = device_in(element)) return device;
  }
  return std::nullopt;
}

template <class Element>
MaybeDevice device_in(const c10::ArrayRef<Element>& list) {
  return device_in_list<Element>(list);
}

inline MaybeDevice device_in(const at::ITensorListRef& list) {
  return device_in_list<at::Tensor>(list);
}

template <class Element>
MaybeDevice device_in(const c10::List<Element>& list) {
  return device_in_list<Element>(list);
}

template <class Signature, Signature* function, class Order>
struct Kernel;

template <class Result, class... Arguments, Result (*function)(Arguments...),
          std::size_t... positions>
struct Kernel<Result(Arguments...), function, DeviceOf<positions...>> {
  static Result call(Arguments... arguments) {
    if constexpr (sizeof...(positions) == 0) {
      return function(std::forward<Arguments>(arguments)...);
    } else {
      MaybeDevice device;
      const auto all = std::tie(arguments...);
      static_cast<void>(((device = device_in(std::get<positions>(all))) || ...));
      const c10::OptionalDeviceGuard guard(device);
      return function(std::forward<Arguments>(arguments)...);
    }
  }
};

}  // namespace kernel_detail

/// What to register for a kernel that the vendor wrote: `function` itself, called while the device
/// of its arguments is the current one, which is restored afterwards. `Signature` is the type that
/// PyTorch wants; it picks one of several overloads, and a function of another type does not
/// compile.
template <class Signature, Signature* function, class Order = DeviceOf<>>
constexpr Signature* kernel() {
  return &kernel_detail::Kernel<Signature, function, Order>::call;
}

}  // namespace backendkit
