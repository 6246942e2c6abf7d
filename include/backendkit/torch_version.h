// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between PyTorch releases; no other header asks for a version.
//
// A function of the guard and the hooks that older releases lack has no `override`: where PyTorch
// declares it virtual it overrides all the same. A function that older releases declare `noexcept`
// is `noexcept` for all.

#include <ATen/core/Generator.h>
#include <torch/version.h>

#if __has_include(<ATen/core/GeneratorForPrivateuseone.h>)
#include <ATen/core/GeneratorForPrivateuseone.h>
#endif

/// Whether the PyTorch compiled for is of release MAJOR.MINOR or newer.
#define BACKENDKIT_TORCH_AT_LEAST(MAJOR, MINOR) \
  (TORCH_VERSION_MAJOR > (MAJOR) ||             \
   (TORCH_VERSION_MAJOR == (MAJOR) && TORCH_VERSION_MINOR >= (MINOR)))

namespace backendkit {

/// Makes `make` what `torch.Generator(device)` calls, in releases that do not ask the hooks for it.
inline void register_generator_maker([[maybe_unused]] at::Generator (*make)(c10::DeviceIndex)) {
#if !BACKENDKIT_TORCH_AT_LEAST(2, 8)
  static const at::_GeneratorRegister registered(make);
#endif
}

}  // namespace backendkit
