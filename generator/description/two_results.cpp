// SPDX-License-Identifier: Apache-2.0
#include "description/two_results.h"

#include <fmt/format.h>

namespace backendgen {

void report_two_results(const FunctionUse& use, const FunctionUse& earlier, Diagnostics& problems) {
  Diagnostic& error = problems.error(
      fmt::format("`{}` cannot serve `{}` and `{}`", use.function.value, earlier.op, use.op),
      use.function.span);
  error.earlier = Label{earlier.function.span, "first used here"};
  error.notes.push_back(fmt::format("they have the same parameters, but return `{}` and `{}`",
                                    earlier.return_type, use.return_type));
}

}  // namespace backendgen
