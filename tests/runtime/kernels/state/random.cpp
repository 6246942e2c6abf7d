// SPDX-License-Identifier: Apache-2.0
// Kernels that draw from the device's generator, as docs/random.md shows it: what the threads of a
// device would do is a loop here.
#include <cmath>

#include <ATen/core/PhiloxRNGEngine.h>

#include <backendkit/generator.h>

#include "kernels.h"
#include "runtime.h"
#include "simulator.h"

namespace {

constexpr std::int64_t kThreads = 256;

/// Has each of `kThreads` threads fill every 256th element by `draw`, which takes an engine and
/// draws at most `numbers` numbers from it.
template <class Draw>
void fill(const at::Tensor& self, const std::optional<at::Generator>& generator,
          std::int64_t numbers, Draw draw) {
  const std::int64_t count = self.numel();
  if (count == 0) return;
  const std::int64_t each = (count + kThreads - 1) / kThreads;
  const auto increment = static_cast<std::uint64_t>(each * numbers);
  const backendkit::PhiloxState state =
      backendkit::philox_state<foo::Runtime>(generator, increment);
  float* const data = foo::simulator::inside(self.mutable_data_ptr<float>());
  foo::launch([=] {
    for (std::int64_t thread = 0; thread < kThreads; ++thread) {
      at::Philox4_32 engine(state.seed, static_cast<std::uint64_t>(thread), state.offset / 4);
      for (std::int64_t i = thread; i < count; i += kThreads) data[i] = draw(engine);
    }
  });
}

/// A number from 0 to 1, without 1.
float unit(at::Philox4_32& engine) {
  return static_cast<float>(engine() >> 8) * 0x1p-24f;
}

}  // namespace

at::Tensor& foo::uniform_(at::Tensor& self, double from, double to,
                          std::optional<at::Generator> generator) {
  const auto low = static_cast<float>(from);
  const auto range = static_cast<float>(to - from);
  fill(self, generator, 1, [=](at::Philox4_32& engine) { return low + range * unit(engine); });
  return self;
}

at::Tensor& foo::normal_(at::Tensor& self, double mean, double std,
                         std::optional<at::Generator> generator) {
  fill(self, generator, 2, [=](at::Philox4_32& engine) {
    const double radius = std::sqrt(-2 * std::log(1 - unit(engine)));
    return static_cast<float>(mean + std * radius * std::cos(2 * M_PI * unit(engine)));
  });
  return self;
}
