// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <backendkit/device/device.h>

namespace backendkit {

/// Where a kernel begins to draw from Philox4x32-10. Its thread number t, counted from 0 and below
/// 2^63, takes the numbers of subsequence t from `offset` on, a multiple of 4:
/// `at::Philox4_32(seed, t, offset / 4)` of <ATen/core/PhiloxRNGEngine.h> counts in fours.
struct PhiloxState {
  std::uint64_t seed;
  std::uint64_t offset;
};

/// c10::GeneratorImpl of a device: a seed and how many numbers a thread has drawn, as CUDA's. It
/// makes no numbers itself; kernels and the fallback make them from what `draw` gives. Who calls
/// it holds `mutex_`, as PyTorch does.
class Generator final : public c10::GeneratorImpl {
 public:
  static constexpr std::size_t kStateBytes = 2 * sizeof(std::uint64_t);

  explicit Generator(c10::DeviceIndex index, PhiloxState state = {c10::default_rng_seed_val, 0})
      : c10::GeneratorImpl(c10::Device(kDeviceType, index),
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        state_(state) {}

  static c10::DeviceType device_type() { return kDeviceType; }

  /// Where to draw at most `increment` numbers a thread; later draws begin behind these.
  PhiloxState draw(std::uint64_t increment) {
    const PhiloxState before = state_;
    state_.offset += (increment + 3) / 4 * 4;
    return before;
  }

  void set_current_seed(std::uint64_t seed) override { state_ = {seed, 0}; }
  std::uint64_t current_seed() const override { return state_.seed; }

  std::uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state_.seed;
  }

  void set_offset(std::uint64_t offset) override {
    check_offset(offset);
    state_.offset = offset;
  }

  std::uint64_t get_offset() const override { return state_.offset; }

  /// Takes what `get_state` gives: the bytes of seed and offset.
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == kStateBytes, "RNG state of ", device().type(), " has ",
                kStateBytes, " bytes, not ", state.numel());
    std::uint64_t words[2];
    std::memcpy(words, state.data_dtype_initialized<std::uint8_t>(), kStateBytes);
    check_offset(words[1]);  // a state that is refused changes nothing
    state_ = {words[0], words[1]};
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::Tensor state = at::detail::empty_cpu({kStateBytes}, at::kByte);
    const std::uint64_t words[] = {state_.seed, state_.offset};
    std::memcpy(state.mutable_data_ptr(), words, kStateBytes);
    return state.getIntrusivePtr();
  }

 private:
  static void check_offset(std::uint64_t offset) {
    TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  }

  Generator* clone_impl() const override { return new Generator(device().index(), state_); }

  PhiloxState state_;
};

/// The default generator of a device, made on first use and seeded as a fresh process of PyTorch
/// is. Throws for an index out of range. The reference stays valid.
template <class Runtime>
const at::Generator& default_generator(c10::DeviceIndex index) {
  static std::mutex mutex;
  // Threads may outlive static objects.
  static auto& all = *new std::vector<std::unique_ptr<at::Generator>>;
  const auto device = static_cast<std::size_t>(
      Devices<Runtime>::checked(index < 0 ? Devices<Runtime>::current() : index));
  const std::lock_guard<std::mutex> lock(mutex);
  if (all.size() <= device) all.resize(device + 1);
  if (all[device] == nullptr) {
    all[device] = std::make_unique<at::Generator>(
        at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device)));
  }
  return *all[device];
}

template <class Runtime>
at::Generator make_generator(c10::DeviceIndex index) {
  const int device = Devices<Runtime>::checked(index < 0 ? Devices<Runtime>::current() : index);
  return at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device));
}

/// What a random kernel calls, once for each call of its operator: where to draw at most
/// `increment` numbers a thread from the generator that the operator was given or, where it was
/// given none, from that of the current device. Throws for a generator of another type of device.
template <class Runtime>
PhiloxState philox_state(const std::optional<at::Generator>& generator, std::uint64_t increment) {
  const at::Generator& used = generator.has_value() && generator->defined()
                                  ? *generator
                                  : default_generator<Runtime>(Devices<Runtime>::current());
  auto* const ours = at::check_generator<Generator>(used);
  const std::lock_guard<std::mutex> lock(ours->mutex_);
  return ours->draw(increment);
}

}  // namespace backendkit
