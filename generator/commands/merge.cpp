// SPDX-License-Identifier: Apache-2.0
#include "commands/merge.h"

#include <fmt/format.h>

#include "base/tool.h"
#include "glue/torch_option.h"
#include "torch/releases.h"

namespace backendgen {

int run_merge(const MergeOptions& options, Context& context) {
  const std::string python = options.python.empty() ? default_python(context) : options.python;
  std::vector<std::string> arguments = {options.out.empty() ? "dist" : options.out, "tell",
                                        tested_minors()};
  arguments.insert(arguments.end(), options.wheels.begin(), options.wheels.end());
  const Outcome outcome =
      context.process.run(tool_command(python, "merge", arguments, context.folder));
  if (!outcome.why.empty()) {
    return context.refuse(fmt::format("cannot run `{}`: {}", python, outcome.why),
                          "name a Python: `--python EXE`");
  }
  return show_tool(outcome, "the wheels could not be merged", context);
}

}  // namespace backendgen
