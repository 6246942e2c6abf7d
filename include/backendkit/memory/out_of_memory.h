// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <backendkit/device/device.h>
#include <backendkit/device/display_name.h>
#include <backendkit/memory/memory_statistics.h>

namespace backendkit {

/// What is known when a device has not enough memory for a tensor.
struct OutOfMemory {
  int device = 0;
  std::size_t bytes = 0;           // requested
  std::optional<MemoryInfo> info;  // if the Runtime reports it
  MemoryStatistics statistics;
  double fraction = 1;  // of the device's memory that this process may use

  /// Throws torch.OutOfMemoryError, with the wording of PyTorch's own devices.
  [[noreturn]] void raise() const {
    const std::string where = c10::DeviceTypeName(kDeviceType, true) + ":" + std::to_string(device);
    std::string text = DisplayName::get() + " out of memory. Tried to allocate " + readable(bytes);
    if (info) {
      text += ". " + where + " has a total capacity of " + readable(info->total) + " of which " +
              readable(info->free) + " is free.";
      if (info->largest != 0 && bytes > info->largest) {
        text += " The driver allocates at most " + readable(info->largest) + " at once.";
      }
      if (fraction < 1) {
        const double allowed = static_cast<double>(info->total) * fraction;
        text += " " + readable(static_cast<std::size_t>(allowed)) + " allowed.";
      }
    } else {
      text += " on " + where + ".";
    }
    const auto allocated = static_cast<std::size_t>(statistics.allocated_bytes.all().current);
    const auto reserved = static_cast<std::size_t>(statistics.reserved_bytes.all().current);
    text += " Of the allocated memory " + readable(allocated) + " is allocated by PyTorch, and " +
            readable(reserved - allocated) + " is reserved by PyTorch but unallocated.";
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    std::terminate();
  }

 private:
  static std::string readable(std::size_t bytes) {
    constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return std::to_string(bytes) + " bytes";
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024; value /= 1024) ++unit;
    char text[32];
    std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
    return text;
  }
};

}  // namespace backendkit
