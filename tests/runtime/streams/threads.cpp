// SPDX-License-Identifier: Apache-2.0
// Eight threads use the streams, events and memory of the starter project's simulated devices, each
// at random. test_threads.py builds it with ThreadSanitizer and with AddressSanitizer.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <c10/core/CPUAllocator.h>

#include <backendkit/copy/transfers.h>
#include <backendkit/device/event.h>
#include <backendkit/guard.h>
#include <backendkit/profiled_range.h>
#include <backendkit/stream.h>

#include "runtime.h"

// Nobody profiles here; the glue has these otherwise.
struct backendkit::ProfiledRange::Function {};
backendkit::ProfiledRange::ProfiledRange(const char*) {}
backendkit::ProfiledRange::~ProfiledRange() = default;

namespace {

using Runtime = foo::Runtime;
using Streams = backendkit::Streams<Runtime>;
using Events = backendkit::Events<Runtime>;
using Transfers = backendkit::Transfers<Runtime>;
using backendkit::CopyKind;

C10_REGISTER_GUARD_IMPL(PrivateUse1, backendkit::DeviceGuard<Runtime>);

constexpr int kThreads = 8;
constexpr std::size_t kBytes = 512;

/// One thread: streams that it was given, events, and memory of one device.
class Worker {
 public:
  explicit Worker(int number)
      : device_(static_cast<c10::DeviceIndex>(number % 2)),
        random_(static_cast<unsigned>(number + 1)) {
    backendkit::Devices<Runtime>::set(device_);
    for (c10::DataPtr& block : blocks_) block = allocate();
  }

  ~Worker() {
    for (void* const event : events_) Events::destroy(event);
  }

  /// One operation; false when bytes came out wrong.
  bool step(void** shared) {
    void*& event = events_[pick(events_.size())];
    switch (pick(10)) {
      case 0:
        streams_[pick(streams_.size())] = Streams::next(device_, static_cast<int>(pick(9)) - 4);
        return true;
      case 1:
        Streams::exchange(device_, stream());
        return true;
      case 2:
        Events::record(&event, device_, stream(), true);
        return true;
      case 3:
        Events::block(event, device_, stream());
        return true;
      case 4:
        return (Events::query(event) && Streams::query(device_, stream())) || true;
      case 5:
        Events::destroy(event);
        event = nullptr;
        return true;
      case 6:
        // The event is of the first device; any stream may wait for it.
        if (device_ == 0) Events::record(shared, 0, stream(), true);
        Events::block(*shared, device_, stream());
        return true;
      case 7:
        Events::synchronize(event);
        if (pick(50) == 0) backendkit::Devices<Runtime>::synchronize(device_);
        return true;
      case 8:
        if (pick(20) == 0) blocks_[pick(blocks_.size())] = allocate();
        return true;
      default:
        return bytes_come_back();
    }
  }

 private:
  c10::DataPtr allocate() { return backendkit::Allocator<Runtime>::instance().allocate(kBytes); }

  /// Memory of the host, filled with one byte.
  static c10::Storage host_memory(char filling) {
    c10::Storage made(c10::Storage::use_byte_size_t(), kBytes, c10::GetCPUAllocator(), false);
    std::memset(made.mutable_data(), filling, kBytes);
    return made;
  }

  std::size_t pick(std::size_t count) { return random_() % count; }

  c10::StreamId stream() { return streams_[pick(streams_.size())]; }

  /// Sends bytes to the device on one stream and brings them back on another, which waits for it.
  bool bytes_come_back() {
    const c10::Storage there = host_memory(static_cast<char>(random_()));
    const c10::Storage back = host_memory(0);
    for (const c10::StreamId one : streams_) Streams::synchronize(device_, one);
    void* sent = nullptr;
    {
      Streams::exchange(device_, stream());
      Transfers transfers;
      transfers.begin(blocks_[0].get(), there.data(), kBytes, CopyKind::kHostToDevice, device_,
                      &there);
      transfers.begin(blocks_[1].get(), blocks_[0].get(), kBytes, CopyKind::kDeviceToDevice,
                      device_, nullptr);
      Events::record(&sent, device_, Streams::current(device_), false);
      transfers.finish();
    }
    Streams::exchange(device_, stream());
    Events::block(sent, device_, Streams::current(device_));
    Events::destroy(sent);
    Transfers transfers;
    transfers.begin(blocks_[2].get(), blocks_[1].get(), kBytes, CopyKind::kDeviceToDevice, device_,
                    nullptr);
    transfers.begin(back.mutable_data(), blocks_[2].get(), kBytes, CopyKind::kDeviceToHost, device_,
                    &back);
    transfers.finish();
    return std::memcmp(back.data(), there.data(), kBytes) == 0;
  }

  const c10::DeviceIndex device_;
  std::minstd_rand random_;
  std::array<c10::StreamId, 6> streams_{};
  std::array<void*, 4> events_{};
  std::array<c10::DataPtr, 3> blocks_;
};

/// A thread that keeps all others from copying to a device, while they are about to: false when
/// one of them overtakes it.
bool copies_wait_their_turn() {
  backendkit::FairSharedMutex& writes = backendkit::writes_to(0);
  std::atomic<int> copied{0};
  int copied_before = -1;
  std::vector<std::thread> threads;
  writes.lock_shared();  // as a copy that takes long
  threads.emplace_back([&] {
    const std::lock_guard<backendkit::FairSharedMutex> lock(writes);
    copied_before = copied;
  });
  while (writes.waiting() < 1) std::this_thread::yield();
  for (int number = 1; number < kThreads; ++number) {
    threads.emplace_back([&] {
      const c10::DataPtr block = backendkit::Allocator<Runtime>::instance().allocate(kBytes);
      static const std::array<char, kBytes> there{};  // the device may read it after the thread
      Transfers transfers;
      transfers.begin(block.get(), there.data(), kBytes, CopyKind::kHostToDevice, 0, nullptr);
      ++copied;
    });
  }
  while (writes.waiting() < kThreads) std::this_thread::yield();
  writes.unlock_shared();
  for (std::thread& thread : threads) thread.join();
  return copied_before == 0 && copied == kThreads - 1;
}

}  // namespace

/// threads COUNT: each thread does so many operations.
int main(int, char** arguments) {
  const long count = std::atol(arguments[1]);
  std::atomic<long> wrong{0};
  void* shared = nullptr;
  Events::record(&shared, 0, Streams::kDefault, true);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Worker worker(number);
      for (long i = 0; i < count; ++i) wrong += worker.step(&shared) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  Events::destroy(shared);
  wrong += copies_wait_their_turn() ? 0 : 1;
  std::printf("%ld operations, %ld wrong\n", count * kThreads, wrong.load());
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
