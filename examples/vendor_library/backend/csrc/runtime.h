#pragma once

#include <cstddef>

#include <backendkit/runtime.h>

namespace foo {

/// The Foo driver as PyTorch sees it.
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
