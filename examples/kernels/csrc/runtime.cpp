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

// Null means that the device has no such block left; PyTorch then raises torch.OutOfMemoryError.
void* Runtime::allocate(std::size_t bytes, int) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, whole);
}

void Runtime::deallocate(void* pointer, std::size_t, int) { std::free(pointer); }

// The simulated memory is the host's, so a copy of any kind is the same.
void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind,
                   backendkit::StreamHandle) {
  std::memmove(dst, src, bytes);
}

// Nothing here runs later than the call that asked for it.
void Runtime::synchronize(int) {}

}  // namespace foo
