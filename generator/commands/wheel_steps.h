// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/context.h"
#include "description/description.h"

namespace backendgen {

/// Runs a tool and shows what it says; whether it was content.
bool run_tool(const std::string& python, const std::string& module,
              const std::vector<std::string>& arguments, const std::filesystem::path& folder,
              const std::string& unexpected, Context& context);

/// The tool repair's words for a description; `runtime` is what runtime_facts() returns.
std::vector<std::string> repair_words(const std::filesystem::path& wheel,
                                      const Description& description, const std::string& runtime);

/// Puts a file where it is wanted, whole or not at all.
bool deliver(const std::filesystem::path& file, const std::filesystem::path& target,
             Context& context);

/// The same for a wheel, and says how large it is and how long it took.
bool finish_wheel(const std::filesystem::path& wheel, const std::filesystem::path& folder,
                  std::chrono::steady_clock::time_point started, Context& context);

}  // namespace backendgen
