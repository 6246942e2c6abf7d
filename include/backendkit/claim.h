// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <backendkit/device/device.h>

namespace backendkit {

/// The reason why PyTorch's place for a backend is not free for the device `name`. Empty if it is;
/// the device then has that name: `torch::Device(name)` and the generic code for accelerators know
/// it. If Python or the program has given it the same name already, that is not an error.
inline std::string claim(const std::string& name) {
  const std::string one = "PyTorch supports one PrivateUse1 backend per process, and ";
  const std::string taken = c10::get_privateuse1_backend();
  if (c10::is_privateuse1_backend_registered() && taken != name) {
    return one + "device `" + taken + "` is already registered";
  }
  if (at::isPrivateUse1HooksRegistered() || c10::impl::hasDeviceGuardImpl(kDeviceType)) {
    return one + "another library has already registered one";
  }
  try {
    c10::register_privateuse1_backend(name);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

/// Like `claim`, but warns if the place is not free. Never throws: an exception while a library is
/// loaded ends the program.
inline std::string claim_or_warn(const std::string& name) {
  std::string why = claim(name);
  if (!why.empty()) TORCH_WARN("device `", name, "` is not available: ", why);
  return why;
}

}  // namespace backendkit
