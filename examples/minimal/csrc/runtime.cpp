#include "runtime.h"

#include <cstdlib>
#include <cstring>

namespace foo {

namespace {

constexpr int kDevices = 2;
constexpr std::size_t kAlignment = 64;

thread_local int current = 0;

}  // namespace

// Called once per process, even if there is no driver; return 0 then.
int Runtime::device_count() { return kDevices; }

int Runtime::current_device() { return current; }

void Runtime::set_device(int device) { current = device; }

// Return null if the device has not enough memory; PyTorch then raises torch.OutOfMemoryError.
void* Runtime::allocate(std::size_t bytes, int) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, whole);
}

void Runtime::deallocate(void* pointer, std::size_t, int) { std::free(pointer); }

// The simulated memory is host memory, so all kinds of copies are the same.
void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind,
                   backendkit::StreamHandle) {
  std::memmove(dst, src, bytes);
}

// All work here has completed when the call that requested it returns.
void Runtime::synchronize(int) {}

}  // namespace foo
