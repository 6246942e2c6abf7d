// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include <torch/version.h>

#include <backendkit/device/autograd_threads.h>
#include <backendkit/device/capabilities.h>
#include <backendkit/device/device.h>
#include <backendkit/device/properties.h>
#include <backendkit/fallback/fallback_report.h>
#include <backendkit/generator.h>
#include <backendkit/memory/in_flight.h>
#include <backendkit/profiler/operator_times.h>
#include <backendkit/stream.h>

namespace backendkit {

/// The functions that the device's Python module calls through `torch.ops`; see templates/python.
template <class Runtime>
class PythonOperators {
 public:
  static void define_all(torch::Library& library) {
    library.def("device_count() -> int", &device_count);
    library.def("device_failure() -> str", &device_failure);
    library.def("current_device() -> int", &current_device);
    library.def("set_device(int device) -> ()", &set_device);
    library.def("exchange_device(int device) -> int", &exchange_device);
    library.def("synchronize(int device) -> ()", &synchronize);
    library.def("properties(int device) -> (str, int, int, int, int)", &properties);
    library.def("can_access_peer(int device, int peer) -> bool", &can_access_peer);
    library.def("current_stream(int device) -> int", &current_stream);
    library.def("exchange_stream(int device, int stream) -> int", &exchange_stream);
    library.def("manual_seed(int device, int seed) -> ()", &manual_seed);
    library.def("seed(int device) -> int", &seed);
    library.def("initial_seed(int device) -> int", &initial_seed);
    library.def("get_rng_state(int device) -> Tensor", &get_rng_state);
    library.def("set_rng_state(int device, Tensor state) -> ()", &set_rng_state);
    library.def("capabilities() -> (str[], int[], str[])", &capability_table<Runtime>);
    library.def("default_generator(int device) -> Generator?", &generator);
    library.def("register_late() -> ()", &LateRegistration::make_all);
    library.def("is_in_use() -> bool", &Devices<Runtime>::in_use);
    library.def("is_in_bad_fork() -> bool", &is_in_bad_fork);
    library.def("drain_autograd(int milliseconds) -> bool", &drain_autograd);
    library.def("build_torch_version() -> str", &build_torch_version);
    library.def("fallback_counts() -> (str[], int[], int[], int[], int[])", &FallbackCounts::table);
    library.def("copy_counts() -> (int[], int[], int[])", &CopyCounts::table);
    library.def("kernel_times() -> (str[], int[], int[])", &KernelTimes::table);
    library.def("time_span() -> (int, int)", &KernelTimes::span);
    library.def("time_kernels(bool begin) -> ()", &KernelTimes::take);
    library.def("reset_counts() -> ()", &reset_counts);
    KernelTimes::reset();
  }

 private:
  /// A device's number as PyTorch's narrow index type; a number out of its range is no device
  /// either.
  static c10::DeviceIndex index(std::int64_t device) {
    const auto narrow = static_cast<c10::DeviceIndex>(device);
    return Devices<Runtime>::checked(narrow == device ? narrow : c10::DeviceIndex{-1});
  }

  static std::int64_t device_count() { return Devices<Runtime>::count(); }
  static std::string device_failure() { return Devices<Runtime>::failure(); }
  static std::int64_t current_device() { return Devices<Runtime>::current(); }
  static void set_device(std::int64_t device) { Devices<Runtime>::set(index(device)); }

  static std::int64_t exchange_device(std::int64_t device) {
    return Devices<Runtime>::exchange(index(device));
  }

  static void synchronize(std::int64_t device) {
    const c10::DeviceIndex where = index(device);
    InFlight::wait(where, std::nullopt, [&] { Streams<Runtime>::synchronize_all(where); });
  }

  /// Name, bytes of memory, number of processors, major and minor version of the capability.
  static std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t> properties(
      [[maybe_unused]] std::int64_t device) {
    if constexpr (HasProperties<Runtime>) {
      const DeviceProperties& all = properties_of<Runtime>(index(device));
      return {all.name, static_cast<std::int64_t>(all.total_memory), all.multi_processor_count,
              all.major, all.minor};
    } else {
      missing("device properties", "properties");
    }
  }

  /// Without peer copies no device can access another one's memory.
  static bool can_access_peer(std::int64_t device, std::int64_t peer) {
    const int from = index(device);
    const int to = index(peer);
    if constexpr (HasPeers<Runtime>) {
      Devices<Runtime>::use();
      return from != to && Driver<Runtime>::can_access_peer(from, to);
    } else {
      return false;
    }
  }

  static std::int64_t current_stream(std::int64_t device) {
    return Streams<Runtime>::current(index(device));
  }

  /// Makes a stream this thread's current one and returns the previous one. Throws for an id that
  /// was never handed out.
  static std::int64_t exchange_stream(std::int64_t device, std::int64_t stream) {
    const c10::DeviceIndex where = index(device);
    Streams<Runtime>::handle(where, stream);
    return Streams<Runtime>::exchange(where, stream);
  }

  static at::Generator generator(std::int64_t device) {
    return default_generator<Runtime>(index(device));
  }

  /// Calls `use` with a device's generator while holding its lock.
  template <class Use>
  static auto with_generator(std::int64_t device, Use&& use) {
    at::Generator generator = default_generator<Runtime>(index(device));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return use(generator);
  }

  static void manual_seed(std::int64_t device, std::int64_t seed) {
    with_generator(
        device, [&](at::Generator it) { it.set_current_seed(static_cast<std::uint64_t>(seed)); });
  }

  static std::int64_t seed(std::int64_t device) {
    return with_generator(device,
                          [](at::Generator it) { return static_cast<std::int64_t>(it.seed()); });
  }

  static std::int64_t initial_seed(std::int64_t device) {
    return with_generator(
        device, [](at::Generator it) { return static_cast<std::int64_t>(it.current_seed()); });
  }

  static at::Tensor get_rng_state(std::int64_t device) {
    return with_generator(device, [](const at::Generator& it) { return it.get_state(); });
  }

  static void set_rng_state(std::int64_t device, const at::Tensor& state) {
    with_generator(device, [&](at::Generator it) { it.set_state(state); });
  }

  /// Waits until autograd's threads hold no Python objects; true immediately if they never did.
  static bool drain_autograd(std::int64_t milliseconds) {
    return !Devices<Runtime>::in_use() ||
           AutogradThreads::drain(Devices<Runtime>::count(),
                                  std::chrono::milliseconds(milliseconds));
  }

  static void reset_counts() {
    FallbackCounts::reset();
    CopyCounts::reset();
    KernelTimes::reset();
  }

  static bool is_in_bad_fork() { return Devices<Runtime>::forked(); }
  static std::string build_torch_version() { return TORCH_VERSION; }
};

}  // namespace backendkit
