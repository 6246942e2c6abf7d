// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>

namespace backendkit {

/// Which way `Runtime::copy` goes. Both ends of a copy on the device are on the same device.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };

/// A stream of the vendor's driver, as it is passed through PyTorch; null is the default stream.
using StreamHandle = void*;

// The required functions of a vendor's Runtime, one concept each. All are static. Devices are
// numbered from 0; every function but `device_count` may throw, and what it throws becomes the
// error that the Python user sees.

/// `int device_count()`: how many devices there are. 0 when there is no driver; never throws.
template <class Runtime>
concept HasDeviceCount = requires {
  { Runtime::device_count() } -> std::same_as<int>;
};

/// `int current_device()`: the current device of this thread.
template <class Runtime>
concept HasCurrentDevice = requires {
  { Runtime::current_device() } -> std::same_as<int>;
};

/// `void set_device(int device)`: makes a device this thread's current one.
template <class Runtime>
concept HasSetDevice = requires(int device) {
  { Runtime::set_device(device) } -> std::same_as<void>;
};

/// `void* allocate(std::size_t bytes, int device)`: memory of a device, aligned for any number, at
/// least one byte; null when there is not enough.
template <class Runtime>
concept HasAllocate = requires(std::size_t bytes, int device) {
  { Runtime::allocate(bytes, device) } -> std::same_as<void*>;
};

/// `void deallocate(void* pointer, std::size_t bytes, int device)`: gives back what `allocate` gave
/// for as many bytes. Does not throw.
template <class Runtime>
concept HasDeallocate = requires(void* pointer, std::size_t bytes, int device) {
  { Runtime::deallocate(pointer, bytes, device) } -> std::same_as<void>;
};

/// `void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
/// backendkit::StreamHandle stream)`: copies, in order with the work of the stream on the current
/// device. On the default stream the copy is done when it returns.
template <class Runtime>
concept HasCopy = requires(void* dst, const void* src, std::size_t bytes, CopyKind kind,
                           StreamHandle stream) {
  { Runtime::copy(dst, src, bytes, kind, stream) } -> std::same_as<void>;
};

/// `void synchronize(int device)`: waits until all work of a device is done.
template <class Runtime>
concept HasSynchronize = requires(int device) {
  { Runtime::synchronize(device) } -> std::same_as<void>;
};

/// `static constexpr bool host_accessible = true`, which a Runtime may declare: the host reads and
/// writes the memory of `allocate` at the same addresses as its own. Operators that fall back to
/// the CPU then copy nothing; `synchronize` is called before the host touches the memory.
template <class Runtime>
constexpr bool host_accessible() {
  if constexpr (requires { Runtime::host_accessible; }) {
    static_assert(std::same_as<decltype(Runtime::host_accessible), const bool>,
                  "host_accessible must be: static constexpr bool host_accessible");
    return Runtime::host_accessible;
  } else {
    return false;
  }
}

/// Fails to compile, with the signature that is expected, for a Runtime without a required
/// function.
template <class Runtime>
constexpr bool check_runtime() {
  static_assert(HasDeviceCount<Runtime>, "Runtime needs: static int device_count()");
  static_assert(HasCurrentDevice<Runtime>, "Runtime needs: static int current_device()");
  static_assert(HasSetDevice<Runtime>, "Runtime needs: static void set_device(int device)");
  static_assert(HasAllocate<Runtime>,
                "Runtime needs: static void* allocate(std::size_t bytes, int device)");
  static_assert(
      HasDeallocate<Runtime>,
      "Runtime needs: static void deallocate(void* pointer, std::size_t bytes, int device)");
  static_assert(HasCopy<Runtime>,
                "Runtime needs: static void copy(void* dst, const void* src, std::size_t bytes, "
                "backendkit::CopyKind kind, backendkit::StreamHandle stream)");
  static_assert(HasSynchronize<Runtime>, "Runtime needs: static void synchronize(int device)");
  return true;
}

}  // namespace backendkit
