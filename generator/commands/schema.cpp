// SPDX-License-Identifier: Apache-2.0
#include "commands/schema.h"

#include "template.h"

namespace backendgen {

int run_schema(Context& context) {
  constexpr std::string_view kPath = "schema/backend.schema.json";
  for (const TemplateFile& file : templates()) {
    if (file.path != kPath) continue;
    context.console.data(file.text);
    return kDone;
  }
  throw InternalError("no template " + std::string(kPath));
}

}  // namespace backendgen
