#include "runtime.h"

#include <stdexcept>
#include <string>

#include <foodriver.h>

namespace foo {

namespace {

// What is thrown here becomes the RuntimeError that the Python user reads.
void check(foo_status status, const char* what) {
  if (status == FOO_OK) return;
  throw std::runtime_error(std::string("foo driver: ") + what + ": " + foo_status_text(status));
}

}  // namespace

int Runtime::device_count() {
  int count = 0;
  return foo_get_device_count(&count) == FOO_OK ? count : 0;
}

int Runtime::current_device() {
  int device = 0;
  check(foo_get_device(&device), "current device");
  return device;
}

void Runtime::set_device(int device) { check(foo_set_device(device), "set device"); }

void* Runtime::allocate(std::size_t bytes, int device) {
  void* pointer = nullptr;
  const foo_status status = foo_malloc(&pointer, bytes, device);
  if (status == FOO_OUT_OF_MEMORY) return nullptr;
  check(status, "allocate");
  return pointer;
}

// Nothing can be done about a failure here, and PyTorch frees tensors where it must not see one.
void Runtime::deallocate(void* pointer, std::size_t, int) { foo_free(pointer); }

void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind,
                   backendkit::StreamHandle) {
  check(foo_copy(dst, src, bytes), "copy");
}

void Runtime::synchronize(int device) { check(foo_synchronize(device), "synchronize"); }

}  // namespace foo
