// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/DeviceGuard.h>

#include <backendkit/call_fallback.h>
#include <backendkit/kernel/kernel_traits.h>
#include <backendkit/kernel/timed_work.h>

namespace backendkit {

namespace kernel_detail {

using MaybeDevice = std::optional<c10::Device>;

/// Calls `visit` with every tensor in an argument of an operator until a call returns true, and
/// returns whether one did. Skips undefined tensors and arguments that are not tensors.
template <class Visit>
bool any_tensor(const at::Tensor& tensor, const Visit& visit) {
  return tensor.defined() && visit(tensor);
}

template <class Visit>
bool any_tensor(const std::optional<at::Tensor>& tensor, const Visit& visit) {
  return tensor.has_value() && any_tensor(*tensor, visit);
}

template <class Visit>
bool any_tensor(const at::OptionalTensorRef& tensor, const Visit& visit) {
  return tensor.has_value() && any_tensor(*tensor, visit);
}

template <class Visit, class List>
bool any_in_list(const List& list, const Visit& visit) {
  for (const auto& tensor : list) {
    if (any_tensor(tensor, visit)) return true;
  }
  return false;
}

template <class Visit>
bool any_tensor(at::TensorList list, const Visit& visit) {
  return any_in_list(list, visit);
}

template <class Visit>
bool any_tensor(const std::optional<at::TensorList>& list, const Visit& visit) {
  return list.has_value() && any_in_list(*list, visit);
}

template <class Visit>
bool any_tensor(const at::ITensorListRef& list, const Visit& visit) {
  return any_in_list(list, visit);
}

template <class Visit>
bool any_tensor(const at::IOptTensorListRef& list, const Visit& visit) {
  return any_in_list(list, visit);
}

template <class Visit>
bool any_tensor(const c10::List<std::optional<at::Tensor>>& list, const Visit& visit) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (any_tensor(std::optional<at::Tensor>(list[i]), visit)) return true;
  }
  return false;
}

template <class Value, class Visit>
requires(!std::is_base_of_v<at::TensorBase, Value>) bool any_tensor(const Value&, const Visit&) {
  return false;
}

/// This backend's device in an argument; nothing for any other device, or for "foo" without an
/// index, which means the current device.
inline MaybeDevice ours(c10::Device device) {
  return device.is_privateuseone() && device.has_index() ? MaybeDevice(device) : std::nullopt;
}

template <class Value>
MaybeDevice device_in(const Value& argument) {
  MaybeDevice device;
  any_tensor(argument, [&](const at::Tensor& tensor) {
    device = ours(tensor.device());
    return device.has_value();
  });
  return device;
}

inline MaybeDevice device_in(const c10::Device& device) {
  return ours(device);
}

inline MaybeDevice device_in(const std::optional<c10::Device>& device) {
  return device.has_value() ? ours(*device) : std::nullopt;
}

/// Whether a kernel supports an argument's dtypes: those of its tensors on the device (scalars on
/// the CPU take the dtype of the others), or the argument itself if it is a dtype.
template <class Value>
bool computes(const Dtypes& dtypes, const Value& argument) {
  return !any_tensor(argument, [&](const at::Tensor& tensor) {
    return tensor.is_privateuseone() && !dtypes.has(tensor.scalar_type());
  });
}

inline bool computes(const Dtypes& dtypes, at::ScalarType dtype) {
  return dtypes.has(dtype);
}

inline bool computes(const Dtypes& dtypes, const std::optional<at::ScalarType>& dtype) {
  return !dtype.has_value() || dtypes.has(*dtype);
}

/// The word at `position` in a list such as "self, mat2, out".
inline std::string word(std::string_view words, std::size_t position) {
  for (; position > 0; --position) words.remove_prefix(words.find(", ") + 2);
  return std::string(words.substr(0, words.find(", ")));
}

/// Throws PyTorch's error if the tensors among an operator's arguments are on two devices.
template <class... Arguments>
void check_one_device(std::string_view op, const char* names, const Arguments&... arguments) {
  MaybeDevice common;
  std::size_t position = 0;
  const auto check = [&](const auto& argument) {
    any_tensor(argument, [&](const at::Tensor& tensor) {
      const c10::Device device = tensor.device();
      if (common.value_or(device) != device) {
        c10::impl::common_device_check_failure(*common, tensor, std::string(op).c_str(),
                                               word(names, position).c_str());
      }
      common = device;
      return false;
    });
    ++position;
  };
  (check(arguments), ...);
}

/// Whether an argument is of this backend's device, with an index or without; a generator is not.
template <class Value>
bool is_ours(const Value& argument) {
  return any_tensor(argument, [](const at::Tensor& tensor) { return tensor.is_privateuseone(); });
}

inline bool is_ours(const c10::Device& device) {
  return device.is_privateuseone();
}

inline bool is_ours(const std::optional<c10::Device>& device) {
  return device.has_value() && device->is_privateuseone();
}

/// Throws PyTorch's error if only a generator is of the device: PyTorch then calls the device's
/// kernel with tensors of the CPU.
template <class... Arguments>
void check_generator(const Arguments&... arguments) {
  TORCH_CHECK((is_ours(arguments) || ...), "Expected a 'cpu' device type for generator but found '",
              c10::DeviceTypeName(kDeviceType, true), "'");
}

/// The first dtype among an operator's arguments that a kernel does not support.
template <class... Arguments>
at::ScalarType first_refused(const Dtypes& dtypes, const Arguments&... arguments) {
  std::optional<at::ScalarType> found;
  const auto look = [&](const auto& argument) {
    any_tensor(argument, [&](const at::Tensor& tensor) {
      const bool refused = tensor.is_privateuseone() && !dtypes.has(tensor.scalar_type());
      if (refused && !found.has_value()) found = tensor.scalar_type();
      return refused;
    });
  };
  (look(arguments), ...);
  return found.value_or(at::ScalarType::Undefined);
}

/// Calls an operator through the fallback.
template <Name op, class Result, class... Arguments>
Result call_fallback(Arguments... arguments) {
  static const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + op.base()).c_str(), op.overload().c_str());
  return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
      c10::BoxedKernel::makeFromFunction<&backendkit::call_fallback>(), handle,
      c10::DispatchKeySet(), std::forward<Arguments>(arguments)...);
}

/// Raises the error that PyTorch's kernels raise for an unsupported dtype.
template <Name op>
[[noreturn]] void raise_unsupported(at::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, '"', op.base(), "\" not implemented for '", dtype, "'");
  std::abort();
}

/// Runs before each kernel: makes the checks that PyTorch leaves to the device, checks the dtypes,
/// and makes the arguments' device the current one. Times the kernel where that is asked for.
template <Name op, class Traits, class Order, class Signature>
struct Entry;

template <Name op, class Traits, std::size_t... positions, class Result, class... Arguments>
struct Entry<op, Traits, DeviceOf<positions...>, Result(Arguments...)> {
  template <class Body>
  static Result call(const Body& body, Arguments... arguments) {
    if constexpr (Traits::kOneDevice) {
      check_one_device(op.view(), Traits::kArguments, arguments...);
    }
    if constexpr ((std::is_same_v<std::decay_t<Arguments>, std::optional<at::Generator>> || ...)) {
      check_generator(arguments...);
    }
    if constexpr (!Traits::kDtypes.has_all()) {
      if (!(computes(Traits::kDtypes, arguments) && ...)) {
        return refuse(first_refused(Traits::kDtypes, arguments...),
                      std::forward<Arguments>(arguments)...);
      }
    }
    const auto run = [&]() -> Result { return body(std::forward<Arguments>(arguments)...); };
    if constexpr (sizeof...(positions) == 0) {
      return timed_kernel("aten", op.view(), run);
    } else {
      MaybeDevice device;
      const auto all = std::tie(arguments...);
      static_cast<void>(((device = device_in(std::get<positions>(all))) || ...));
      const c10::OptionalDeviceGuard guard(device);
      return timed_kernel("aten", op.view(), run);
    }
  }

  /// Handles a call with a dtype that the kernel does not support.
  static Result refuse(at::ScalarType dtype, Arguments... arguments) {
    if constexpr (Traits::kUnsupported == Unsupported::kError) {
      raise_unsupported<op>(dtype);
    } else {
      return call_fallback<op, Result, Arguments...>(std::forward<Arguments>(arguments)...);
    }
  }
};

}  // namespace kernel_detail

}  // namespace backendkit
