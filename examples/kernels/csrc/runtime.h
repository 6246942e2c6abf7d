#pragma once

#include <cstddef>

#include <backendkit/runtime.h>

namespace foo {

/// What PyTorch needs of the device. Here two devices are simulated on the host's memory; replace
/// each function in runtime.cpp by a call of your driver. What each of them promises stands in
/// <backendkit/runtime.h>.
struct Runtime {
  static int device_count();
  static int current_device();
  static void set_device(int device);

  static void* allocate(std::size_t bytes, int device);
  static void deallocate(void* pointer, std::size_t bytes, int device);

  static void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
                   backendkit::StreamHandle stream);
  static void synchronize(int device);
};

}  // namespace foo
