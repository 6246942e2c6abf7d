// SPDX-License-Identifier: Apache-2.0
#include "glue/custom_model.h"

#include <vector>

#include <fmt/format.h>

#include "base/quote.h"
#include "glue/kernel_rows.h"
#include "torch/cpp_types.h"
#include "torch/python_types.h"

namespace backendgen {

std::vector<KernelModel> custom_functions(const Description& description) {
  std::vector<KernelModel> functions;
  for (const CustomOperator& custom : description.custom) {
    const auto signature = custom_signature(*custom.schema);
    for (const Text* function : {&custom.kernel, &custom.cpu, &custom.meta}) {
      // One function may compute on the device and on the CPU; it is declared once.
      const bool declared = function != &custom.kernel && function->value == custom.kernel.value;
      if (function->value.empty() || declared) continue;
      KernelModel model = model_function(function->value, *signature);
      model.schema = custom.text.value;
      functions.push_back(std::move(model));
    }
  }
  return functions;
}

void add_custom_rows(const Description& description, const std::vector<KernelModel>& functions,
                     Values& values) {
  for (const char* list : {"custom", "custom_kernels", "custom_views", "custom_cpu", "custom_meta",
                           "custom_plain", "custom_writes", "custom_fakes", "custom_formulas"}) {
    values.lists[list] = {};
  }
  values.texts["custom_declarations"] = declarations(all_of(functions));
  values.lists["custom_headers"] = header_rows(all_of(functions));
  for (const CustomOperator& custom : description.custom) {
    const Schema& schema = *custom.schema;
    const auto signature = custom_signature(schema);
    const std::string none = "None";
    const bool overload = !schema.name().overload.empty();
    Values row;
    row.texts = {
        {"custom_op", schema.name().text()},
        {"custom_schema", quote(schema.text())},
        {"custom_doc", quote(custom.text.value)},
        {"custom_signature", signature->type()},
        {"custom_kernel", custom.kernel.value},
        {"custom_cpu_kernel", custom.cpu.value},
        {"custom_meta_kernel", custom.meta.value},
        {"custom_fake", quote(custom.fake.value)},
        {"custom_backward", quote(custom.backward.value)},
        {"custom_setup",
         custom.setup_context.value.empty() ? none : quote(custom.setup_context.value)},
        {"custom_name", custom_python_name(schema)},
        {"custom_packet", schema.name().base},
        {"custom_overload", overload ? schema.name().overload : "default"},
        {"custom_parameters", python_parameters(schema)},
        {"custom_arguments", python_arguments(schema)},
        {"custom_result", python_result(schema)},
    };
    values.lists["custom"].push_back(row);
    if (schema.views()) {
      values.lists["custom_views"].push_back(row);
      continue;
    }
    values.lists["custom_kernels"].push_back(row);
    if (!custom.cpu.value.empty()) values.lists["custom_cpu"].push_back(row);
    if (!custom.meta.value.empty()) values.lists["custom_meta"].push_back(row);
    if (schema.writes()) {
      values.lists["custom_writes"].push_back(row);
    } else if (custom.backward.value.empty()) {
      values.lists["custom_plain"].push_back(row);
    }
    if (!custom.fake.value.empty()) values.lists["custom_fakes"].push_back(row);
    if (!custom.backward.value.empty()) values.lists["custom_formulas"].push_back(row);
  }
}

}  // namespace backendgen