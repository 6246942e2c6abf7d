// SPDX-License-Identifier: Apache-2.0
#include "kernel_model.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpp_types.h"

namespace backendgen {

namespace {

/// As in `at::_ops`: the base and the overload, joined by an underscore.
std::string identifier(const OperatorName& name) {
  return name.overload.empty() ? name.base : name.base + '_' + name.overload;
}

constexpr std::size_t kColumns = 100;

/// Parameters as they stand behind `head`; one a line when the declaration is too long for one
/// line.
std::string wrapped(const std::string& head, const std::string& parameters) {
  if (head.size() + parameters.size() + std::string_view("();").size() <= kColumns) {
    return parameters;
  }
  std::string text = "\n    ";
  int depth = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const char letter = parameters[i];
    text += letter;
    if (letter == '<') ++depth;
    if (letter == '>') --depth;
    if (letter != ',' || depth != 0) continue;
    text += "\n    ";
    ++i;  // the space behind the comma
  }
  return text;
}

KernelModel make_model(const Operator& op, const Kernel& kernel, const Signature& signature) {
  const std::string& function = kernel.function.value;
  const std::size_t colons = function.rfind("::");
  const bool nested = colons != std::string::npos;
  KernelModel model;
  model.op = op.schema.name().text();
  model.op_id = identifier(op.schema.name());
  model.function = function;
  model.function_namespace = nested ? function.substr(0, colons) : "";
  model.function_name = nested ? function.substr(colons + 2) : function;
  model.schema = op.schema.text();
  model.signature = signature.type();
  model.return_type = signature.return_type;
  model.parameters = signature.declaration();
  model.arguments = signature.arguments();
  model.guard = fmt::format("{}", fmt::join(device_order(op.schema), ", "));
  model.headers = cpp_headers(signature);
  return model;
}

}  // namespace

std::map<std::string, std::string> KernelModel::values() const {
  return {{"op", op},
          {"op_id", op_id},
          {"function", function},
          {"function_namespace", function_namespace},
          {"function_name", function_name},
          {"schema", schema},
          {"signature", signature},
          {"return_type", return_type},
          {"parameters", parameters},
          {"arguments", arguments},
          {"guard", guard}};
}

std::optional<std::vector<KernelModel>> model_kernels(const Description& description,
                                                      const Catalog& catalog,
                                                      const TorchInstall& torch,
                                                      Diagnostics& problems) {
  const std::size_t errors = problems.error_count();
  check_operators(description, catalog, torch, problems);
  if (problems.error_count() != errors) return std::nullopt;
  std::vector<KernelModel> models;
  for (const Kernel& kernel : description.kernels) {
    const Operator* op = catalog.find(kernel.op.value);
    std::string unknown;
    const auto signature = cpp_signature(*op, SymInts::kNumbers, unknown);
    models.push_back(make_model(*op, kernel, *signature));
  }
  return models;
}

Rows declaration_rows(const std::vector<KernelModel>& kernels) {
  // Functions are told apart by what they are declared with; one may serve several operators.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const KernelModel*>>
      functions;
  for (const KernelModel& kernel : kernels) {
    const std::string types = kernel.signature.substr(kernel.return_type.size());
    functions[{kernel.function_namespace, kernel.function_name, types}].push_back(&kernel);
  }
  Rows rows;
  const std::string* open = nullptr;
  for (const auto& [key, served] : functions) {
    const KernelModel& kernel = *served.front();
    const std::string& scope = std::get<0>(key);
    const bool begins = open == nullptr || *open != scope;
    if (begins && open != nullptr && !open->empty()) {
      rows.back()["closes"] = fmt::format("\n}}  // namespace {}\n", *open);
    }
    std::vector<std::string> schemas;
    for (const KernelModel* one : served) schemas.push_back("// " + one->schema);
    rows.push_back(
        {{"opens", begins && !scope.empty() ? fmt::format("namespace {} {{\n\n", scope) : ""},
         {"closes", ""},
         {"schemas", fmt::format("{}", fmt::join(schemas, "\n"))},
         {"return_type", kernel.return_type},
         {"function_name", kernel.function_name},
         {"parameters", wrapped(fmt::format("{} {}", kernel.return_type, kernel.function_name),
                                kernel.parameters)}});
    open = &scope;
  }
  if (open != nullptr && !open->empty()) {
    rows.back()["closes"] = fmt::format("\n}}  // namespace {}\n", *open);
  }
  return rows;
}

Rows header_rows(const std::vector<KernelModel>& kernels) {
  std::set<std::string> headers;
  for (const KernelModel& kernel : kernels) {
    headers.insert(kernel.headers.begin(), kernel.headers.end());
  }
  Rows rows;
  for (const std::string& header : headers) rows.push_back({{"header", header}});
  return rows;
}

}  // namespace backendgen
