// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace backendgen {

/// Calls `work(0)` to `work(count - 1)`, each once, in any order, on as many threads as there are
/// cores. A thread takes `together` of them at a time, which should be worth a thread. Throws what
/// one of them throws, after all have ended.
void on_all_cores(std::size_t count, std::size_t together,
                  const std::function<void(std::size_t)>& work);

}  // namespace backendgen
