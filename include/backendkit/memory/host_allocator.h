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

/// PyTorch's allocator of the CPU, except while an operator falls back on this thread and the host
/// can reach the device's memory: then what the operator allocates lies on the device, and a result
/// becomes a tensor of the device without a copy.
///
/// A block is freed by its own deleter, whoever holds it and whenever. Other threads, and this one
/// before and after, get the memory that they would get without it; so does a call that the device
/// has no memory for, whose result is then copied.
template <class Runtime>
class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (!lending_ || bytes == 0) return base()->allocate(bytes);
    try {
      c10::DataPtr block = Device::instance().allocate(bytes);
      // Work of the device may still use what the allocator gives out in the order of streams.
      if constexpr (HasStreams<Runtime>) {
        Streams<Runtime>::synchronize_current(block.device().index());
      }
      return lend(std::move(block));
    } catch (const c10::OutOfMemoryError&) {
      return base()->allocate(bytes);
    }
  }

  /// Frees what `raw_allocate` gave, lent or not.
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    base()->copy_data(dst, src, bytes);
  }

  /// The device's block behind a pointer of the CPU, in its place; without memory where the pointer
  /// is not one lent, which is left as it is.
  static c10::DataPtr take(c10::DataPtr& pointer) {
    if (pointer.get_deleter() != &free_block) return {};
    c10::DataPtr block = forget(pointer.get());
    if (block) pointer.release_context();
    return block;
  }

  /// While it lives, what this thread allocates on the CPU lies on the current device.
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

  /// The device's blocks that are lent as memory of the CPU. PyTorch wants the CPU's pointers to be
  /// their own context, so what frees them is kept here.
  struct Lent {
    std::mutex mutex;
    std::unordered_map<void*, c10::DataPtr> blocks;
  };

  /// Puts itself before the CPU's allocator. It is there for good: storages keep their allocator.
  static void install() {
    static std::once_flag once;
    std::call_once(once, [] {
      base();
      constexpr std::uint8_t kHighest = 255;
      c10::SetCPUAllocator(new HostAllocator, kHighest);
#ifndef _WIN32
      // A forked child frees memory too, and finds the lock free whatever the other threads did.
      pthread_atfork([] { lent().mutex.lock(); }, [] { lent().mutex.unlock(); },
                     [] { lent().mutex.unlock(); });
#endif
    });
  }

  /// The CPU's allocator that there was before this one.
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
