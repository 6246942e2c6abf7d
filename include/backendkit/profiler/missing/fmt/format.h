// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kineto.h includes and does not need. PyTorch has it from 2.8 on; where there is another one,
// compilers find that.
