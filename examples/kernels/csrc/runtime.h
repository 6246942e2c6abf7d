#pragma once

#include <cstddef>

#include <backendkit/runtime.h>

namespace foo {

/// The functions that PyTorch needs from the device. These simulate two devices in host memory;
/// replace the body of each one in runtime.cpp with a call to your driver. <backendkit/runtime.h>
/// says what each function must do.
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
