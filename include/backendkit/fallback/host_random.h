// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <backendkit/generator.h>

namespace backendkit {

/// By how much an operator on the CPU moves the device's generator on: the next state is another
/// one, and `host_generator` makes other numbers of it, as many as are asked for.
constexpr std::uint64_t kDrawnByHost = 4;

/// A generator of the CPU for an operator that the CPU computes for the device: the same numbers
/// for the same state. All 624 words of it are drawn from Philox, since a seed of the CPU's has 32
/// bits: of 77,000 operators two would likely draw the same numbers. They come from a subsequence
/// of 2^63 and more, where no kernel draws and no other state of the same seed.
inline at::Generator host_generator(PhiloxState state) {
  at::Philox4_32 words(state.seed, ~(state.offset / 4));
  at::mt19937_data_pod data;
  data.seed_ = state.seed;
  data.left_ = 1;  // the words are to be mixed before the first number is drawn
  data.seeded_ = true;
  data.next_ = 0;
  for (std::uint32_t& word : data.state_) word = words();
  at::mt19937 engine;
  engine.set_data(data);
  at::Generator made = at::detail::createCPUGenerator();
  at::check_generator<at::CPUGeneratorImpl>(made)->set_engine(engine);
  return made;
}

}  // namespace backendkit
