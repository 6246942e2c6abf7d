// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace backendkit {

/// The reason, for the user, why this library has registered nothing with PyTorch; null if it has
/// registered the device. The first call decides this and gives the device its name, so everything
/// that the library registers when it is loaded checks this first. The generated backend.cpp
/// defines the function.
const char* registration_problem() noexcept;

}  // namespace backendkit
