// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <c10/core/Device.h>

#include <backendkit/device/driver_error.h>

namespace backendkit {

/// What messages for people call the device: `display_name` of backend.toml, which the generated
/// glue sets before anything can use the device. Without it, the name that people type.
class DisplayName {
 public:
  static void set(const char* name) { name_ = name; }
  static std::string get() {
    return name_ == nullptr ? c10::DeviceTypeName(kDeviceType, true) : name_;
  }

 private:
  inline static const char* name_ = nullptr;
};

}  // namespace backendkit
