// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace backendkit {

/// Why this library has registered nothing with PyTorch, in words for the user; null where it has
/// registered the device. The first call decides, and gives the device its name: whatever the
/// library registers when it is opened asks here first. The generated backend.cpp defines it.
const char* refusal() noexcept;

}  // namespace backendkit
