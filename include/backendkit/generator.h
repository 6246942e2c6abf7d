// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <backendkit/device.h>

namespace backendkit {

/// c10::GeneratorImpl of a device. Its numbers are those of a CPU generator inside it, which random
/// operators that fall back to the CPU draw from: so a seed of the device makes them reproducible.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index, at::Generator cpu = at::detail::createCPUGenerator())
      : c10::GeneratorImpl(c10::Device(kDeviceType, index),
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  /// The generator that an operator on the CPU takes in place of this one.
  const at::Generator& cpu() const { return cpu_; }

  void set_current_seed(std::uint64_t seed) override { cpu_.set_current_seed(seed); }
  std::uint64_t current_seed() const override { return cpu_.current_seed(); }
  std::uint64_t seed() override { return cpu_.seed(); }

  /// Its numbers have no offset but where its state stands. Pickling asks for one all the same.
  void set_offset(std::uint64_t offset) override {
    TORCH_CHECK(offset == 0, "a generator of ", device(), " has no offset to set: use its state");
  }
  std::uint64_t get_offset() const override { return 0; }

  void set_state(const c10::TensorImpl& state) override {
    cpu_.unsafeGetGeneratorImpl()->set_state(state);
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpu_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  Generator* clone_impl() const override { return new Generator(device().index(), cpu_.clone()); }

  at::Generator cpu_;
};

/// The default generator of a device, made on first use and seeded as a fresh process of PyTorch
/// is. Throws for an index out of range. The reference stays valid.
template <class Runtime>
const at::Generator& default_generator(c10::DeviceIndex index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<at::Generator>> all;
  const auto device = static_cast<std::size_t>(
      Devices<Runtime>::checked(index < 0 ? Devices<Runtime>::current() : index));
  const std::lock_guard<std::mutex> lock(mutex);
  if (all.size() <= device) all.resize(device + 1);
  if (all[device] == nullptr) {
    at::Generator made = at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device));
    made.set_current_seed(c10::default_rng_seed_val);
    all[device] = std::make_unique<at::Generator>(std::move(made));
  }
  return *all[device];
}

template <class Runtime>
at::Generator make_generator(c10::DeviceIndex index) {
  const int device = Devices<Runtime>::checked(index < 0 ? Devices<Runtime>::current() : index);
  return at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device));
}

}  // namespace backendkit
