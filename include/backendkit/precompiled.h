// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every registration file includes. add_torch_backend() precompiles this header if there are
// many such files; no file includes it by name.

#include <backendkit/structured.h>
#include <backendkit/unstructured.h>
#include <torch/library.h>
