// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every file of registrations includes, for add_torch_backend() to compile once where there
// are many of them. Nothing includes it by name.

#include <backendkit/plain.h>
#include <backendkit/structured.h>
#include <torch/library.h>
