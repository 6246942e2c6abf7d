// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <torch/library.h>

#include <backendkit/distributed/first_use.h>
#include <backendkit/distributed/staged_backend.h>
#include <backendkit/distributed/timer.h>

namespace backendkit {

/// The operators with which the device's Python module makes process groups; see
/// templates/python/common/_distributed.py.
///
/// `kHasDriver` says whether the driver has collectives.
template <bool kHasDriver>
class ProcessGroups {
 public:
  /// `space` is the library's namespace; `name` is what `torch.distributed.get_backend` returns.
  static void define_all(torch::Library& library, const char* space, const char* name) {
    name_ = name;
    FirstUse::define_all(library, space);
    library.def(
        "attach_process_group(__torch__.torch.classes.c10d.ProcessGroup group, int timeout_ms) "
        "-> ()",
        &attach);
    library.def("shutdown_process_group(__torch__.torch.classes.c10d.ProcessGroup group) -> ()",
                &shut_down);
    library.def("end_process_groups() -> ()", &end);
    c10d::TimerRegistry()->Register(kDeviceType, [](c10::Device device) {
      return std::unique_ptr<c10d::Timer>(new StepTimer(device));
    });
  }

  /// Makes sparse tensors on the device reach their process group: PyTorch lets only those of the
  /// CPU and of CUDA do so.
  static void take_sparse(const c10::OperatorHandle& op, c10::DispatchKeySet,
                          torch::jit::Stack* stack) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
  }

 private:
  using Group = StagedGroup;

  /// Gives a group that has a part for the CPU, which nobody else uses, one for the device.
  static void attach(const c10::intrusive_ptr<c10d::ProcessGroup>& group, std::int64_t timeout_ms) {
    auto made = std::make_shared<Group>(name_, group->getBackend(c10::DeviceType::CPU));
    const std::chrono::milliseconds timeout(timeout_ms);
    {
      const std::lock_guard<std::mutex> lock(mutex());
      std::erase_if(groups(), [](const std::weak_ptr<Group>& one) { return one.expired(); });
      groups().push_back(made);
    }
    group->setBackend(kDeviceType, c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::make_intrusive<StagedBackend<kHasDriver>>(std::move(made), timeout));
  }

  /// For releases whose process groups cannot shut down their parts.
  static void shut_down(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
    auto part = c10::dynamic_intrusive_pointer_cast<StagedBackend<kHasDriver>>(
        group->getBackend(kDeviceType));
    if (part) part->shutdown();  // not if PyTorch has wrapped it, to check arguments
  }

  /// Closes all groups and waits until their threads have nothing to do, for a limited time if they
  /// wait for the host's collectives: while Python ends, a thread that needs Python's lock would
  /// end the process.
  static void end() {
    if (device_facts().forked()) return;
    std::vector<std::shared_ptr<Group>> open;
    {
      const std::lock_guard<std::mutex> lock(mutex());
      for (const std::weak_ptr<Group>& one : groups()) {
        if (auto group = one.lock()) open.push_back(std::move(group));
      }
    }
    for (const std::shared_ptr<Group>& group : open) group->close();
    open.clear();
    // Other ranks need this one's part of what the driver does. It ends at its time-outs.
    if constexpr (kHasDriver) DriverWatch::wait_for_all();
    Lane::drain_all(std::chrono::seconds(10));
  }

  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }

  static std::vector<std::weak_ptr<Group>>& groups() {
    static auto* const groups = new std::vector<std::weak_ptr<Group>>;
    return *groups;
  }

  inline static const char* name_ = "";
};

}  // namespace backendkit
