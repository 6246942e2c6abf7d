// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <backendkit/generator.h>

namespace backendkit {

/// How far an operator on the CPU advances the device's generator: the next state is a different
/// one, and from each state `host_generator` can draw any number of random numbers.
constexpr std::uint64_t kDrawnByHost = 4;

/// A CPU generator for an operator that the CPU computes for the device; the same state gives the
/// same numbers. All of its 624 words are drawn from Philox, because a CPU seed has only 32 bits:
/// of 77,000 operators two would likely draw the same numbers. The words come from subsequences
/// from 2^63 on, which no kernel and no other state of the same seed uses.
inline at::Generator host_generator(PhiloxState state) {
  at::Philox4_32 words(state.seed, ~(state.offset / 4));
  at::mt19937_data_pod data;
  data.seed_ = state.seed;
  data.left_ = 1;  // mixes the words before the first number is drawn
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
