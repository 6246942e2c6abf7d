// SPDX-License-Identifier: Apache-2.0
#include "glue/torch_option.h"

#include <fmt/format.h>

#include "torch/search.h"

namespace backendgen {

std::string default_python(const Context& context) {
  const std::optional<std::string> active = context.environment("VIRTUAL_ENV");
  return active && !active->empty() ? *active + "/bin/python" : "python3";
}

std::optional<TorchInstall> choose_torch(const std::string& option, const std::string& python,
                                         Context& context, Diagnostics& problems) {
  if (!option.empty()) return search_torch(option, "torch", nullptr, context, problems);
  return find_torch(python.empty() ? default_python(context) : python, context.disk,
                    context.process, problems);
}

void check_release(const Description& description, const TorchInstall& torch,
                   Diagnostics& problems) {
  const Text& wanted = description.torch_requires;
  if (wanted.value.empty() || admits(wanted.value, torch.version)) return;
  problems
      .error(fmt::format("PyTorch {} does not meet `requires`", torch.version.text()), wanted.span)
      .notes.push_back(fmt::format("found in {}", torch.folder.generic_string()));
}

}  // namespace backendgen
