// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

#include <c10/core/CPUAllocator.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include <backendkit/allocator.h>
#include <backendkit/stream.h>

namespace backendkit {

/// PyTorch's CPU allocator, with one exception: while an operator falls back on this thread and the
/// host can access the device's memory, what the operator allocates is in device memory, so that a
/// result becomes a device tensor without a copy.
///
/// Each block is freed by its own deleter, whoever holds it and at any time. Other threads, and
/// this one before and after, get ordinary CPU memory. So does an allocation for which the device
/// has no memory; its result is then copied.
template <class Runtime>
class LendingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (!lending_ || bytes == 0) return base()->allocate(bytes);
    try {
      c10::DataPtr block = Device::instance().allocate(bytes);
      // The allocator reuses memory in stream order, so work on the device may still use it.
      if constexpr (HasStreams<Runtime>) {
        Streams<Runtime>::synchronize_current(block.device().index());
      }
      return lend(std::move(block));
    } catch (const c10::OutOfMemoryError&) {
      return base()->allocate(bytes);
    }
  }

  /// Frees what `raw_allocate` returned, lent or not.
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    base()->copy_data(dst, src, bytes);
  }

  /// Takes the device's block behind a CPU pointer out of it. Returns no memory, and leaves the
  /// pointer unchanged, if the pointer was not lent by this allocator.
  static c10::DataPtr take(c10::DataPtr& pointer) {
    if (pointer.get_deleter() != &free_block) return {};
    c10::DataPtr block = forget(pointer.get());
    if (block) pointer.release_context();
    return block;
  }

  /// While this object lives, this thread's CPU allocations are in the current device's memory.
  class Lending {
   public:
    Lending() : before_(lending_) {
      install();
      lending_ = true;
    }
    ~Lending() { lending_ = before_; }
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;

   private:
    const bool before_;
  };

 private:
  using Device = backendkit::Allocator<Runtime>;

  /// The device's blocks that are lent as CPU memory. PyTorch requires CPU pointers to be their own
  /// context, so what frees them is kept here.
  struct Lent {
    std::mutex mutex;
    std::unordered_map<void*, c10::DataPtr> blocks;
  };

  /// Replaces the CPU's allocator, permanently: storages keep their allocator.
  static void install() {
    static std::once_flag once;
    std::call_once(once, [] {
      base();
      constexpr std::uint8_t kHighest = 255;
      c10::SetCPUAllocator(new LendingAllocator, kHighest);
#ifndef _WIN32
      // A forked child frees memory too; this makes sure that it finds the mutex unlocked.
      pthread_atfork([] { lent().mutex.lock(); }, [] { lent().mutex.unlock(); },
                     [] { lent().mutex.unlock(); });
#endif
    });
  }

  /// The previous CPU allocator.
  static c10::Allocator* base() {
    static c10::Allocator* const base = c10::GetCPUAllocator();
    return base;
  }

  static Lent& lent() {
    static auto* const lent = new Lent;  // memory may be freed after static destructors
    return *lent;
  }

  static c10::DataPtr lend(c10::DataPtr block) {
    void* const data = block.get();
    const std::lock_guard<std::mutex> lock(lent().mutex);
    lent().blocks.emplace(data, std::move(block));
    return {data, data, &free_block, c10::Device(c10::kCPU)};
  }

  static c10::DataPtr forget(void* data) {
    const std::lock_guard<std::mutex> lock(lent().mutex);
    const auto found = lent().blocks.find(data);
    if (found == lent().blocks.end()) return {};
    c10::DataPtr block = std::move(found->second);
    lent().blocks.erase(found);
    return block;
  }

  static void free_block(void* data) {
    if (data == nullptr || forget(data)) return;
    base()->raw_deleter()(data);
  }

  inline static thread_local bool lending_ = false;
};

}  // namespace backendkit
