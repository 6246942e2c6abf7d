// SPDX-License-Identifier: Apache-2.0
#include "torch/python_types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"

namespace backendgen {

std::string custom_python_name(const Schema& schema) {
  const OperatorName& name = schema.name();
  return name.overload.empty() ? name.base : fmt::format("{}_{}", name.base, name.overload);
}

std::string python_type(const Type& type, bool result) {
  constexpr std::array<std::pair<Atom, std::string_view>, 12> kTypes = {{
      {Atom::kTensor, "torch.Tensor"},
      {Atom::kInt, "int"},
      {Atom::kSymInt, "int"},
      {Atom::kFloat, "float"},
      {Atom::kBool, "bool"},
      {Atom::kString, "str"},
      {Atom::kScalar, "Union[int, float, bool, complex]"},
      {Atom::kScalarType, "torch.dtype"},
      {Atom::kLayout, "torch.layout"},
      {Atom::kDevice, "torch.device"},
      {Atom::kMemoryFormat, "torch.memory_format"},
      {Atom::kGenerator, "torch.Generator"},
  }};
  const auto found =
      std::ranges::find(kTypes, type.atom, [](const auto& one) { return one.first; });
  if (found == kTypes.end()) return {};
  std::string text(found->second);
  for (const Suffix& suffix : type.suffixes) {
    if (suffix.kind == Suffix::kOptional) {
      text = fmt::format("Optional[{}]", text);
    } else {
      // PyTorch accepts tuples as well, and returns lists.
      text = fmt::format("{}[{}]", result ? "list" : "Sequence", text);
    }
  }
  return text;
}

bool is_python_number(std::string_view text) {
  if (text.find_first_not_of("-.eE0123456789") != text.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  // Python does not accept a leading zero, as in 01.
  const std::size_t first = text.find_first_of("0123456789");
  return text[first] != '0' || first + 1 == text.size() ||
         text.find_first_of("0123456789", first + 1) != first + 1;
}

std::string python_default(const std::string& value) {
  if (value == "None" || value == "True" || value == "False" || is_python_number(value))
    return value;
  // Tuples, because a list that is a default is shared by all calls.
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
    if (!is_python_number(item) && item != "True" && item != "False") return {};
    items.push_back(item);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
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

}  // namespace backendgen
