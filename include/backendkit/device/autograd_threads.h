// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/autograd/engine.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include <backendkit/device/device.h>

namespace backendkit {

/// The threads on which PyTorch's autograd engine runs backward passes, one per device index.
///
/// The engine starts them at the first backward pass of a process, on any device, and from then on
/// refuses backward passes in the children that the process forks. In a process that has not used
/// the device, neither must happen because of it. So the engine sees no devices there (`hidden`),
/// and the first use of the device starts the threads (`start`).
///
/// A thread destroys a backward pass a moment after the caller has its result, and may take
/// Python's GIL for that. Taking the GIL while Python finalizes ends the process by std::terminate.
/// So Python waits for the threads before it finalizes (`drain`).
class AutogradThreads : private torch::autograd::Engine {
  using Engine = torch::autograd::Engine;
  using Queues = std::vector<std::shared_ptr<torch::autograd::ReadyQueue>>;

 public:
  /// Prepares for forks, because each child has its own engine. Called when the library is loaded.
  static void prepare() {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { asked_ = nullptr; });
#endif
  }

  /// Whether the caller is the engine, which asks for the number of devices in order to start
  /// threads, in a process that has not `used` the device. The engine is the first to ask after it
  /// has created its thread pool. False if another accelerator has devices: then the threads start
  /// anyway.
  static bool hidden(const std::atomic<bool>& used) noexcept {
    if (used) return false;
    const void* const pool = (engine().*(&AutogradThreads::thread_pool_shared_)).get();
    if (pool == nullptr || asked_.exchange(pool) == pool || others_have_devices()) return false;
    hidden_ = true;
    return !used;  // otherwise `start` may have missed the assignment above
  }

  /// Starts a thread for each of `devices` devices if they were hidden when the engine started.
  /// Called at the first use of the device, when `hidden` returns false. Throws std::system_error
  /// if the system cannot create more threads.
  static void start(c10::DeviceIndex devices) {
    if (!hidden_) return;
    engine().initialize_device_threads_pool();  // waits for a thread that is running it
    auto& queues = queues_of(engine());
    if (!queues.empty()) return;
    // The engine of a forked child has no pool.
    auto& pool = engine().*(&AutogradThreads::thread_pool_shared_);
    if (pool == nullptr) pool = std::make_shared<ThreadPoolShared>();
    Queues made(static_cast<std::size_t>(devices));
    int device = 0;
    for (auto& queue : made) {
      queue = std::make_shared<torch::autograd::ReadyQueue>();
      std::thread(&Engine::thread_init, &engine(), device++, queue, true).detach();
    }
    queues = std::move(made);
  }

  /// Waits, for at most `most`, until the threads of `devices` devices hold nothing of finished
  /// backward passes. Returns whether they do; throws what the Runtime throws if a device cannot be
  /// made current. Call it without the GIL.
  static bool drain(c10::DeviceIndex devices, std::chrono::milliseconds most) {
    const auto last = std::min(devices, static_cast<c10::DeviceIndex>(queues_of(engine()).size()));
    if (last == 0) return true;
    // A separate thread has no Python state that the engine would keep for it.
    std::packaged_task<void()> pass([last] {
      for (c10::DeviceIndex device = 0; device < last; ++device) pass_nothing_back(device);
    });
    std::future<void> passed = pass.get_future();
    std::thread(std::move(pass)).detach();
    if (passed.wait_for(most) != std::future_status::ready) return false;
    passed.get();
    return true;
  }

 private:
  static Engine& engine() {
    return Engine::get_default_engine();
  }

  static Queues& queues_of(Engine& engine) {
    return engine.*(&AutogradThreads::device_ready_queues_);
  }

  /// The only node of a backward pass that does nothing.
  struct Nothing final : torch::autograd::Node {
    torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
  };
  using NodePointer = decltype(torch::autograd::Edge::function);

  /// The type of pointers to nodes differs between releases.
  template <class Pointer = NodePointer>
  static Pointer nothing() {
    if constexpr (requires { Pointer(new Nothing); }) {
      return Pointer(new Nothing);
    } else {
      return Pointer::unsafe_steal_from_new(new Nothing);
    }
  }

  /// Runs an empty backward pass on a device's thread. The thread takes it after it has destroyed
  /// the previous one.
  static void pass_nothing_back(c10::DeviceIndex device) {
    const at::Tensor gradient = at::detail::make_tensor<c10::TensorImpl>(
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), caffe2::TypeMeta::Make<float>(),
        c10::Device(kDeviceType, device));
    // Never freed: in anomaly mode a node holds a Python object.
    auto* const node = new NodePointer(nothing());
    (*node)->add_input_metadata(gradient);
    engine().execute({torch::autograd::Edge(*node, 0)}, {gradient}, /*keep_graph=*/false,
                     /*create_graph=*/false, /*accumulate_grad=*/true);
  }

  /// Whether the engine starts threads for another kind of device.
  static bool others_have_devices() noexcept {
    for (int number = 0; number < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++number) {
      const auto type = static_cast<c10::DeviceType>(number);
      if (type == kDeviceType || type == c10::kCPU || type == c10::kMeta || type == c10::kLazy) {
        continue;
      }
      const auto* const guard = c10::impl::device_guard_impl_registry[number].load();
      if (guard != nullptr && guard->deviceCount() > 0) return true;
    }
    return false;
  }

  inline static std::atomic<const void*> asked_{nullptr};  // the pool whose engine has asked
  inline static std::atomic<bool> hidden_{false};          // here or before the fork
};

}  // namespace backendkit
