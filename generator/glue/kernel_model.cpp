// SPDX-License-Identifier: Apache-2.0
#include "glue/kernel_model.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "description/dtypes.h"
#include "glue/kernel_group.h"
#include "torch/cpp_types.h"

namespace backendgen {

namespace {

/// As in `at::_ops`: the base and the overload, joined by an underscore.
std::string identifier(const OperatorName& name) {
  return name.overload.empty() ? name.base : name.base + '_' + name.overload;
}

std::string dtypes_of(const Kernel& kernel) {
  if (kernel.dtypes.empty()) return {};
  std::vector<std::string> types;
  for (const Text& dtype : kernel.dtypes) {
    types.push_back(fmt::format("at::ScalarType::{}", scalar_type(dtype.value)));
  }
  return fmt::format("backendkit::Dtypes{{{}}}", fmt::join(types, ", "));
}

/// The names of an operator's arguments, those that it writes results to last.
std::string argument_names(const Schema& schema) {
  std::vector<std::string> names;
  for (const Argument& argument : schema.arguments()) names.push_back(argument.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The type that has the function to register for an operator.
std::string registration(const ServedOperator& served, const KernelModel& model) {
  const Schema& schema = served.op->schema;
  const std::string type = served.how == Derivation::kNamed
                               ? model.signature
                               : cpp_signature(*served.op, SymInts::kNumbers)->type();
  const std::string name = quote(schema.name().text());
  const std::string traits = model.op_id + "_kernel";
  const std::string order =
      fmt::format("backendkit::DeviceOf<{}>", fmt::join(device_order(schema), ", "));
  const auto structured = [&](std::string_view variant) {
    return fmt::format("backendkit::Structured<{}, backendkit::Variant::{}, {}, {}, {}>", name,
                       variant, traits, order, type);
  };
  const auto plain = [&](std::string_view kind) {
    // The cast selects one of the functions if the vendor's name is overloaded.
    return fmt::format("backendkit::{}<{}, {}, {}, {}, static_cast<{}{}>(&{})>", kind, name, traits,
                       order, type, model.return_type,
                       fmt::format(" (*){}", model.signature.substr(model.return_type.size() + 1)),
                       model.function);
  };
  switch (served.how) {
    case Derivation::kStructuredFunctional:
      return structured("kFunctional");
    case Derivation::kStructuredInPlace:
      return structured("kInPlace");
    case Derivation::kStructuredOut:
      return structured("kOut");
    case Derivation::kOutOfFunctional:
      return plain("OutOfFunctional");
    case Derivation::kInPlaceOfFunctional:
      return plain("InPlaceOfFunctional");
    case Derivation::kInPlaceOfOut:
      return plain("InPlaceOfOut");
    case Derivation::kNamed:
      break;
  }
  return fmt::format("backendkit::Unstructured<{}, {}, {}, {}, &{}>", name, traits, order, type,
                     model.function);
}

/// Whether an element of the result depends on only one element of each input. A TensorIterator
/// mostly says so; `glu`, `index` and losses with a reduction are the others.
bool is_elementwise(const Operator& out, const std::vector<const Operator*>& group) {
  if (!out.tensor_iterator) return false;
  const auto pointwise = [](const Operator* one) { return one->pointwise; };
  if (std::any_of(group.begin(), group.end(), pointwise)) return true;
  const auto arguments = out.schema.arguments();
  return std::none_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
    return argument.type.is(Atom::kInt) ||
           (argument.type.tensor_like() && !argument.type.suffixes.empty() &&
            argument.type.suffixes.back().kind == Suffix::kList);
  });
}

/// Fills what only structured kernels have.
void add_structured(const Operator& out, const Catalog& catalog, KernelModel& model) {
  const auto group = catalog.group(out);
  const auto signature = structured_signature(out);
  const auto functional = std::find_if(group.begin(), group.end(), [&](const Operator* one) {
    return one->delegate == out.schema.name().text() &&
           one->schema.kind() == SchemaKind::kFunctional;
  });
  const OperatorName& name = (*functional)->schema.name();
  model.meta_class = identifier(name);
  model.meta_header = fmt::format("ATen/ops/{}_meta.h", name.base);
  const Signature meta{"", signature->meta};
  model.meta_parameters = meta.declaration();
  model.meta_arguments = meta.arguments();
  model.outputs = out.schema.out().size();
  model.has_precomputed = std::any_of(signature->precomputed.begin(), signature->precomputed.end(),
                                      [](bool one) { return one; });
  model.elementwise = is_elementwise(out, group);
  std::vector<std::string> words;
  const std::size_t inputs = signature->kernel.size() - model.outputs;
  for (std::size_t i = 0; i < signature->kernel.size(); ++i) {
    const auto& [type, word] = signature->kernel[i];
    const bool tensors = type.find("Tensor") != std::string::npos;
    model.has_dtype |= word == "dtype";
    if (i >= inputs) {
      words.push_back(fmt::format("call.out({})", i - inputs));
    } else if (signature->precomputed[i]) {
      words.push_back("precomputed." + word);
    } else {
      words.push_back(tensors ? fmt::format("call.in({})", word) : word);
    }
  }
  model.call_arguments = fmt::format("{}", fmt::join(words, ", "));
}

/// Tensors of a list that is written to must be those of the caller.
bool writes_to_list(const Schema& schema) {
  const auto arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
    return argument.write() && !argument.type.suffixes.empty();
  });
}

KernelModel make_model(const Kernel& kernel, const Signature& signature,
                       const std::vector<ServedOperator>& all_served, const Catalog& catalog) {
  const Operator& op = *all_served.front().op;
  KernelModel model = model_function(kernel.function.value, signature);
  model.op = op.schema.name().text();
  model.op_id = identifier(op.schema.name());
  model.root = op.schema.name().root();
  model.schema = op.schema.text();
  model.names = argument_names(op.schema);
  model.dtypes = dtypes_of(kernel);
  model.one_device = op.device_check;
  model.dense = kernel.inputs == Inputs::kDense && !writes_to_list(op.schema);
  model.error = kernel.unsupported == Unsupported::kError;
  if (is_structured_out(op)) add_structured(op, catalog, model);
  for (const ServedOperator& served : all_served) {
    model.registrations.push_back({served.op->schema.name().text(), registration(served, model)});
  }
  return model;
}

}  // namespace

KernelModel model_function(const std::string& function, const Signature& signature) {
  const std::size_t colons = function.rfind("::");
  const bool nested = colons != std::string::npos;
  KernelModel model;
  model.function = function;
  model.function_namespace = nested ? function.substr(0, colons) : "";
  model.function_name = nested ? function.substr(colons + 2) : function;
  model.signature = signature.type();
  model.return_type = signature.return_type;
  model.declaration = signature.head(model.function_name, 1) + ';';
  model.headers = cpp_headers(signature);
  return model;
}

std::vector<KernelModel> model_kernels(const Description& description,
                                       const std::vector<std::optional<Signature>>& signatures,
                                       const Catalog& catalog) {
  const auto named = named_operators(description);
  const std::vector<Kernel>& kernels = description.kernels;
  std::vector<KernelModel> models;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto all_served = served_operators(kernels[i], named, catalog);
    models.push_back(make_model(kernels[i], *signatures[i], all_served, catalog));
  }
  return models;
}

}  // namespace backendgen
