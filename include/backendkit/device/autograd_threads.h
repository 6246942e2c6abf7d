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

/// The threads on which PyTorch's autograd engine runs backward passes, one for each device index.
///
/// The engine starts them at the first backward pass of a process, on any device, and from then on
/// refuses backward passes in the children that the process forks. A process that has not used the
/// device is to notice neither. So the engine counts no devices then (`hidden`), and the first use
/// of the device starts the threads (`start`).
///
/// A thread drops a backward pass a moment after the caller has its result, and may take Python's
/// GIL for that. While Python finalizes, taking the GIL ends the process by std::terminate. So
/// Python waits for the threads before it finalizes (`drain`).
class AutogradThreads : private torch::autograd::Engine {
  using Engine = torch::autograd::Engine;
  using Queues = std::vector<std::shared_ptr<torch::autograd::ReadyQueue>>;

 public:
  /// Prepares for forks, whose children have an engine of their own. Called when the library is
  /// opened.
  static void prepare() {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { asked_ = nullptr; });
#endif
  }

  /// Whether the engine asks for the number of devices, to start threads, in a process that has not
  /// `used` the device. The engine is the first to ask after it made its pool of threads. False
  /// where another accelerator has devices: threads start anyway then.
  static bool hidden(const std::atomic<bool>& used) noexcept {
    if (used) return false;
    const void* const pool = (engine().*(&AutogradThreads::thread_pool_shared_)).get();
    if (pool == nullptr || asked_.exchange(pool) == pool || others_have_devices()) return false;
    hidden_ = true;
    return !used;  // else `start` may have missed what stands in the line above
  }

  /// Starts a thread for each of `devices` devices if they were hidden when the engine started.
  /// Called at the first use of the device, when `hidden` returns false. Throws std::system_error
  /// where there can be no more threads.
  static void start(c10::DeviceIndex devices) {
    if (!hidden_) return;
    engine().initialize_device_threads_pool();  // waits for a thread that is in it
    auto& queues = queues_of(engine());
    if (!queues.empty()) return;
    // The engine of a forked child has none.
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

  /// Waits, for `most` at most, until the threads of `devices` devices hold nothing of backward
  /// passes that are over. Returns whether that is so; throws what the Runtime throws where a
  /// device cannot be made current. Must be called without the GIL.
  static bool drain(c10::DeviceIndex devices, std::chrono::milliseconds most) {
    const auto last = std::min(devices, static_cast<c10::DeviceIndex>(queues_of(engine()).size()));
    if (last == 0) return true;
    // In a thread of its own, which has nothing of Python's that the engine would keep for it.
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

  /// What a backward pass is made of that does nothing.
  struct Nothing final : torch::autograd::Node {
    torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
  };
  using NodePointer = decltype(torch::autograd::Edge::function);

  /// Nodes have had one kind of pointer and then another.
  template <class Pointer = NodePointer>
  static Pointer nothing() {
    if constexpr (requires { Pointer(new Nothing); }) {
      return Pointer(new Nothing);
    } else {
      return Pointer::unsafe_steal_from_new(new Nothing);
    }
  }

  /// Runs a backward pass on the thread of a device. The thread takes it after it has dropped the
  /// one before.
  static void pass_nothing_back(c10::DeviceIndex device) {
    const at::Tensor gradient = at::detail::make_tensor<c10::TensorImpl>(
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), caffe2::TypeMeta::Make<float>(),
        c10::Device(kDeviceType, device));
    // Never freed: in anomaly mode a node has something of Python's.
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
  inline static std::atomic<bool> hidden_{false};          // in this process or before it forked
};

}  // namespace backendkit
