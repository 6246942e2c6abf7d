// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/context.h"
#include "commands/wheel.h"
#include "description/description.h"
#include "description/load.h"

namespace backendgen {

/// What the tools have to know of [wheel.runtime], as JSON; empty where the description has no such
/// table. Nothing, reported, when a library of it is not there.
std::optional<std::string> runtime_facts(const OpenedDescription& opened,
                                         const Description& description, Context& context);

/// `backendgen wheel --runtime`: packs the driver's libraries into a wheel of their own. It needs
/// no PyTorch and compiles nothing. Exit status.
int run_runtime_wheel(const WheelOptions& options, Context& context);

}  // namespace backendgen
