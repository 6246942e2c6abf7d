// SPDX-License-Identifier: Apache-2.0
#include "custom_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpp_types.h"
#include "kernel_rows.h"
#include "quote.h"
#include "words.h"

namespace backendgen {

std::string custom_python_name(const Schema& schema) {
  const OperatorName& name = schema.name();
  return name.overload.empty() ? name.base : fmt::format("{}_{}", name.base, name.overload);
}

namespace {

std::optional<Signature> signature_of(const Schema& schema, std::string& unknown) {
  Operator op{schema};
  return cpp_signature(op, SymInts::kNumbers, unknown);
}

/// A type in Python's annotations; empty when there is none.
std::string python_type(const Type& type, bool result) {
  std::string text;
  switch (type.atom) {
    case Atom::kTensor:
      text = "torch.Tensor";
      break;
    case Atom::kInt:
    case Atom::kSymInt:
      text = "int";
      break;
    case Atom::kFloat:
      text = "float";
      break;
    case Atom::kBool:
      text = "bool";
      break;
    case Atom::kString:
      text = "str";
      break;
    case Atom::kScalar:
      text = "Union[int, float, bool, complex]";
      break;
    case Atom::kScalarType:
      text = "torch.dtype";
      break;
    case Atom::kLayout:
      text = "torch.layout";
      break;
    case Atom::kDevice:
      text = "torch.device";
      break;
    case Atom::kMemoryFormat:
      text = "torch.memory_format";
      break;
    case Atom::kGenerator:
      text = "torch.Generator";
      break;
    default:
      return {};
  }
  for (const Suffix& suffix : type.suffixes) {
    if (suffix.kind == Suffix::kOptional) {
      text = fmt::format("Optional[{}]", text);
    } else {
      text = fmt::format("{}[{}]", result ? "list" : "Sequence", text);
    }
  }
  return text;
}

/// A number as Python writes it: no `1-`, which the schema's parser lets pass, and no `01`.
bool is_number(std::string_view text) {
  if (text.find_first_not_of("-.eE0123456789") != text.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  const std::size_t first = text.find_first_of("0123456789");
  return text[first] != '0' || first + 1 == text.size() ||
         text.find_first_of("0123456789", first + 1) != first + 1;
}

/// A default of a schema in Python; empty when it is no literal.
std::string python_default(const std::string& value) {
  if (value == "None" || value == "True" || value == "False" || is_number(value)) return value;
  if (value == "[]") return "()";
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) {
    const std::string inner = value.substr(1, value.size() - 2);
    const bool plain =
        value.back() == value.front() && inner.find_first_of("\"'\\") == std::string::npos;
    return plain ? quote(inner) : "";
  }
  if (value.size() < 2 || value.front() != '[' || value.back() != ']') return {};
  std::vector<std::string_view> items;
  std::string_view rest = std::string_view(value).substr(1, value.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    if (!is_number(item) && item != "True" && item != "False") return {};
    items.push_back(item);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

/// Whether PyTorch takes `text` as one value of a type.
bool is_value(Atom atom, std::string_view text) {
  const bool truth = text == "True" || text == "False";
  switch (atom) {
    case Atom::kInt:
    case Atom::kSymInt: {
      std::int64_t value = 0;
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data(), end, value);
      return is_number(text) && read.ec == std::errc() && read.ptr == end;
    }
    case Atom::kFloat:
      return is_number(text);
    case Atom::kScalar:
      return is_number(text) || truth;
    case Atom::kBool:
      return truth;
    case Atom::kString:
      return text.starts_with('"') || text.starts_with('\'');
    default:
      return false;
  }
}

/// Whether PyTorch takes `value` as the default of a type.
bool is_default(const Type& type, std::string_view value) {
  std::span<const Suffix> suffixes = type.suffixes;
  if (!suffixes.empty() && suffixes.back().kind == Suffix::kOptional) {
    if (value == "None") return true;
    return suffixes.size() == 1 && is_value(type.atom, value);  // PyTorch reads no lists there
  }
  if (suffixes.empty()) return is_value(type.atom, value);
  const bool numbers = type.atom == Atom::kInt || type.atom == Atom::kSymInt ||
                       type.atom == Atom::kFloat || type.atom == Atom::kBool;
  if (suffixes.size() > 1 || suffixes[0].kind != Suffix::kList || !numbers) return false;
  if (!value.starts_with('[')) return !suffixes[0].size.empty() && is_value(type.atom, value);
  if (value == "[]") return true;
  value = value.substr(1, value.size() - 2);  // python_default has seen the brackets
  for (;;) {
    const std::size_t comma = value.find(',');
    std::string_view item = value.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    if (!is_value(type.atom, item)) return false;
    if (comma == value.npos) return true;
    value.remove_prefix(comma + 1);
  }
}

std::string python_result(const Schema& schema) {
  const auto returns = schema.returns();
  if (returns.empty()) return "None";
  std::vector<std::string> types;
  for (const Return& one : returns) types.push_back(python_type(one.type, true));
  return types.size() == 1 ? types.front() : fmt::format("tuple[{}]", fmt::join(types, ", "));
}

std::string python_parameters(const Schema& schema) {
  std::vector<std::string> parameters;
  const std::size_t positional = schema.positional().size();
  const auto arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i == positional) parameters.push_back("*");
    const Argument& one = arguments[i];
    const std::string value = one.value ? " = " + python_default(*one.value) : "";
    parameters.push_back(fmt::format("{}: {}{}", one.name, python_type(one.type, false), value));
  }
  return fmt::format("{}", fmt::join(parameters, ", "));
}

std::string python_arguments(const Schema& schema) {
  std::vector<std::string> names;
  const std::size_t positional = schema.positional().size();
  const auto arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name;
    names.push_back(i < positional ? name : fmt::format("{0}={0}", name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What the Python module of the operators uses itself.
constexpr std::array<std::string_view, 15> kTaken = {
    "torch", "importlib", "Any", "Callable", "Optional", "Sequence", "Union",  "int",
    "float", "bool",      "str", "complex",  "list",     "tuple",    "getattr"};

/// Names that PyTorch's objects behind `torch.ops.foo` and `torch.ops.foo.add` have themselves.
constexpr std::array<std::string_view, 2> kOfNamespace = {"name", "_dir"};
constexpr std::array<std::string_view, 10> kOfOperator = {"default",
                                                          "op",
                                                          "overloads",
                                                          "op_overloads",
                                                          "_dir",
                                                          "_op",
                                                          "_overload_names",
                                                          "_qualified_op_name",
                                                          "_has_torchbind_op_overload",
                                                          "_schemas"};

/// What headers of C++ define and a parameter cannot be called.
constexpr std::array<std::string_view, 8> kMacros = {"NULL",  "EOF",    "errno",  "assert",
                                                     "stdin", "stdout", "stderr", "int64_t"};

std::string complaint_about_names(const Schema& schema) {
  const std::string name = custom_python_name(schema);
  const std::string& base = schema.name().base;
  const std::string& overload = schema.name().overload;
  for (const std::string& part : {base, overload}) {
    if (is_python_keyword(part)) return fmt::format("`{}` is a keyword of Python", part);
  }
  if (std::find(kOfNamespace.begin(), kOfNamespace.end(), base) != kOfNamespace.end()) {
    return fmt::format("an operator cannot be called `{}`", base);
  }
  if (overload.starts_with("__") ||
      std::find(kOfOperator.begin(), kOfOperator.end(), overload) != kOfOperator.end()) {
    return fmt::format("an overload cannot be called `{}`", overload);
  }
  if (is_python_keyword(name)) return fmt::format("`{}` is a keyword of Python", name);
  const bool taken = std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
  if (taken || name == "_later" || name == "_register" || name.starts_with("__")) {
    return fmt::format("an operator cannot be called `{}`", name);
  }
  for (const Argument& argument : schema.arguments()) {
    const std::string& one = argument.name;
    const bool macro = std::find(kMacros.begin(), kMacros.end(), one) != kMacros.end();
    if (is_cpp_keyword(one) || macro) {
      return fmt::format("argument `{}` has a meaning in C++", one);
    }
    if (is_python_keyword(one)) return fmt::format("argument `{}` is a keyword of Python", one);
    if (one == "torch" || one.starts_with("__")) {
      return fmt::format("an argument cannot be called `{}`", one);
    }
    const auto same = std::count_if(schema.arguments().begin(), schema.arguments().end(),
                                    [&](const Argument& other) { return other.name == one; });
    if (same > 1) return fmt::format("two arguments are called `{}`", one);
  }
  return {};
}

bool writes(const Schema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const Argument& argument) { return argument.write(); });
}

/// Lists in lists, lists of unlikely lengths, and writing to what may be absent.
std::string complaint_about_suffixes(const Argument& argument) {
  constexpr std::size_t kMostDigits = 2;
  const auto& suffixes = argument.type.suffixes;
  const bool nested =
      suffixes.size() > 2 || (suffixes.size() == 2 && suffixes[0].kind == suffixes[1].kind);
  const bool longs = std::any_of(suffixes.begin(), suffixes.end(), [](const Suffix& suffix) {
    return suffix.size.size() > kMostDigits;
  });
  if (nested || longs) return fmt::format("no C++ type is known for `{}`", argument.type.text());
  if (argument.write() && !suffixes.empty() && suffixes.back().kind == Suffix::kOptional) {
    return fmt::format("`{}` may be absent, so it cannot be written to", argument.name);
  }
  return {};
}

}  // namespace

std::optional<Signature> custom_signature(const Schema& schema) {
  std::string unknown;
  return signature_of(schema, unknown);
}

std::string complaint_about_custom(const Schema& schema) {
  const auto arguments = schema.arguments();
  for (const Return& result : schema.returns()) {
    if (result.alias && !result.write())
      return "its result is a view, which PyTorch does not allow";
    const bool known = !result.alias || std::any_of(arguments.begin(), arguments.end(),
                                                    [&](const Argument& argument) {
                                                      return argument.alias == result.alias;
                                                    });
    if (!known) return "its result is said to be an argument, but no argument is marked so";
    const auto& suffixes = result.type.suffixes;
    const bool list = !suffixes.empty() && suffixes.back().kind == Suffix::kList;
    if (list && (result.type.atom == Atom::kBool || result.type.atom == Atom::kScalar)) {
      return fmt::format("no C++ type is known for `{}`", result.type.text());
    }
    if (python_type(result.type, true).empty()) {
      return fmt::format("no Python type is known for `{}`", result.type.text());
    }
  }
  for (const Argument& argument : arguments) {
    if (std::string complaint = complaint_about_suffixes(argument); !complaint.empty()) {
      return complaint;
    }
    if (python_type(argument.type, false).empty()) {
      return fmt::format("no Python type is known for `{}`", argument.type.text());
    }
    if (argument.value && python_default(*argument.value).empty()) {
      return fmt::format("the default of `{}` is no literal", argument.name);
    }
    if (argument.value && !is_default(argument.type, *argument.value)) {
      return fmt::format("`{}` cannot be the default of `{}`, a `{}`", *argument.value,
                         argument.name, argument.type.text());
    }
  }
  const bool dispatched = std::any_of(arguments.begin(), arguments.end(), [](const Argument& one) {
    const auto& suffixes = one.type.suffixes;
    return one.type.atom == Atom::kTensor &&
           (suffixes.size() < 2 || (suffixes.size() == 2 && suffixes.back().kind == Suffix::kList &&
                                    suffixes.front().kind == Suffix::kOptional));
  });
  if (!dispatched) return "it has no tensor among its arguments, and PyTorch goes by their device";
  const auto positional = schema.positional();
  for (std::size_t i = 1; i < positional.size(); ++i) {
    if (positional[i - 1].value && !positional[i].value) {
      return fmt::format("`{}` has no default, but the argument before it has one",
                         positional[i].name);
    }
  }
  if (std::string complaint = complaint_about_names(schema); !complaint.empty()) return complaint;
  std::string unknown;
  if (signature_of(schema, unknown)) return {};
  return fmt::format("no C++ type is known for `{}`", unknown);
}

std::vector<KernelModel> custom_functions(const Description& description) {
  std::vector<KernelModel> functions;
  for (const CustomOperator& custom : description.custom) {
    std::string unknown;
    const auto signature = signature_of(*custom.schema, unknown);
    for (const Text* function : {&custom.kernel, &custom.cpu, &custom.meta}) {
      const bool declared = function != &custom.kernel && function->value == custom.kernel.value;
      if (function->value.empty() || declared) continue;
      const std::size_t colons = function->value.rfind("::");
      const bool nested = colons != std::string::npos;
      KernelModel model;
      model.function = function->value;
      model.function_namespace = nested ? function->value.substr(0, colons) : "";
      model.function_name = nested ? function->value.substr(colons + 2) : function->value;
      model.schema = custom.text.value;
      model.signature = signature->type();
      model.return_type = signature->return_type;
      model.parameters = signature->declaration();
      model.headers = cpp_headers(*signature);
      functions.push_back(std::move(model));
    }
  }
  return functions;
}

void add_custom_rows(const Description& description, Values& values) {
  for (const char* list : {"custom", "custom_cpu", "custom_meta", "custom_plain", "custom_writes",
                           "custom_fakes", "custom_formulas"}) {
    values.lists[list] = {};
  }
  const std::vector<KernelModel> functions = custom_functions(description);
  values.lists["custom_declarations"] = declaration_rows(all_of(functions));
  values.lists["custom_headers"] = header_rows(all_of(functions));
  for (const CustomOperator& custom : description.custom) {
    const Schema& schema = *custom.schema;
    std::string unknown;
    const auto signature = signature_of(schema, unknown);
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
    if (!custom.cpu.value.empty()) values.lists["custom_cpu"].push_back(row);
    if (!custom.meta.value.empty()) values.lists["custom_meta"].push_back(row);
    if (writes(schema)) {
      values.lists["custom_writes"].push_back(row);
    } else if (custom.backward.value.empty()) {
      values.lists["custom_plain"].push_back(row);
    }
    if (!custom.fake.value.empty()) values.lists["custom_fakes"].push_back(row);
    if (!custom.backward.value.empty()) values.lists["custom_formulas"].push_back(row);
  }
}

}  // namespace backendgen
