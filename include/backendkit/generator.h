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

#include <backendkit/stream.h>

namespace backendkit {

/// Where a kernel starts to draw from Philox4x32-10. Thread t, counted from 0 and below 2^63, uses
/// the numbers of subsequence t from `offset` on. `offset` is a multiple of 4, and
/// `at::Philox4_32(seed, t, offset / 4)` of <ATen/core/PhiloxRNGEngine.h> counts in fours.
struct PhiloxState {
  std::uint64_t seed;
  std::uint64_t offset;
};

/// A device's c10::GeneratorImpl: a seed and the count of numbers that a thread has drawn, like
/// CUDA's. It generates no numbers itself; kernels and the fallback do so from the state that
/// `draw` returns. The caller holds `mutex_`, as in PyTorch.
class Generator final : public c10::GeneratorImpl {
 public:
  static constexpr std::size_t kStateBytes = 2 * sizeof(std::uint64_t);

  explicit Generator(c10::DeviceIndex index, PhiloxState state = {c10::default_rng_seed_val, 0})
      : c10::GeneratorImpl(c10::Device(kDeviceType, index),
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        state_(state) {}

  static c10::DeviceType device_type() { return kDeviceType; }

  /// Reserves up to `increment` numbers per thread and returns where they start; later draws start
  /// after them.
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

  /// Sets the state that `get_state` returned: the bytes of seed and offset.
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == kStateBytes, "the RNG state of ", device().type(), " must have ",
                kStateBytes, " bytes, got ", state.numel());
    std::uint64_t words[2];
    std::memcpy(words, state.data_dtype_initialized<std::uint8_t>(), kStateBytes);
    check_offset(words[1]);  // an invalid state changes nothing
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

/// A device's default generator, created on first use and seeded like PyTorch's in a fresh process.
/// Throws for an index out of range. The reference stays valid.
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

/// Call this in a random kernel, once per call of its operator: reserves up to `increment` numbers
/// per thread from the operator's generator or, if it was given none, from the current device's
/// default one, and returns where they start. Throws if the generator belongs to another type of
/// device, or if the current stream records a graph: each of its runs would draw the same numbers.
template <class Runtime>
PhiloxState philox_state(const std::optional<at::Generator>& generator, std::uint64_t increment) {
  const at::Generator& used = generator.has_value() && generator->defined()
                                  ? *generator
                                  : default_generator<Runtime>(Devices<Runtime>::current());
  auto* const ours = at::check_generator<Generator>(used);
  Streams<Runtime>::cannot_record(ours->device().index(), "random numbers");
  const std::lock_guard<std::mutex> lock(ours->mutex_);
  return ours->draw(increment);
}

}  // namespace backendkit
