// SPDX-License-Identifier: Apache-2.0
#include "commands/schema.h"

#include "base/templates.h"

namespace backendgen {

int run_schema(Context& context) {
  context.console.data(find_template("schema/backend.schema.json").text);
  return kDone;
}

}  // namespace backendgen
