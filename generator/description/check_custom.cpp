// SPDX-License-Identifier: Apache-2.0
#include "description/check_custom.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "description/words.h"
#include "torch/cpp_types.h"
#include "torch/python_types.h"

namespace backendgen {

namespace {

/// Whether PyTorch takes `text` as one value of a type.
bool is_value(Atom atom, std::string_view text) {
  const bool truth = text == "True" || text == "False";
  switch (atom) {
    case Atom::kInt:
    case Atom::kSymInt: {
      std::int64_t value = 0;
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data(), end, value);
      return is_python_number(text) && read.ec == std::errc() && read.ptr == end;
    }
    case Atom::kFloat:
      return is_python_number(text);
    case Atom::kScalar:
      return is_python_number(text) || truth;
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

/// What the Python module of the operators uses itself.
constexpr std::array<std::string_view, 15> kTaken = {
    "torch", "importlib", "Any", "Callable", "Optional", "Sequence", "Union",  "int",
    "float", "bool",      "str", "complex",  "list",     "tuple",    "getattr"};

/// Names that PyTorch's objects `torch.ops.foo` and `torch.ops.foo.add` have themselves.
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
constexpr std::array<std::string_view, 8> kDefined = {"NULL",  "EOF",    "errno",  "assert",
                                                      "stdin", "stdout", "stderr", "int64_t"};

Result<void> judge_names(const Schema& schema) {
  const std::string name = custom_python_name(schema);
  const std::string& base = schema.name().base;
  const std::string& overload = schema.name().overload;
  for (const std::string& part : {base, overload}) {
    if (is_python_keyword(part)) return Failure{fmt::format("`{}` is a keyword of Python", part)};
  }
  if (std::find(kOfNamespace.begin(), kOfNamespace.end(), base) != kOfNamespace.end()) {
    return Failure{fmt::format("an operator cannot be called `{}`", base)};
  }
  if (overload.starts_with("__") ||
      std::find(kOfOperator.begin(), kOfOperator.end(), overload) != kOfOperator.end()) {
    return Failure{fmt::format("an overload cannot be called `{}`", overload)};
  }
  if (is_python_keyword(name)) return Failure{fmt::format("`{}` is a keyword of Python", name)};
  const bool taken = std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
  if (taken || name == "_later" || name == "_register" || name.starts_with("__")) {
    return Failure{fmt::format("an operator cannot be called `{}`", name)};
  }
  for (const Argument& argument : schema.arguments()) {
    const std::string& one = argument.name;
    const bool macro = std::find(kDefined.begin(), kDefined.end(), one) != kDefined.end();
    if (is_cpp_keyword(one) || macro) {
      return Failure{fmt::format("argument `{}` has a meaning in C++", one)};
    }
    if (is_python_keyword(one))
      return Failure{fmt::format("argument `{}` is a keyword of Python", one)};
    if (one == "torch" || one.starts_with("__")) {
      return Failure{fmt::format("an argument cannot be called `{}`", one)};
    }
    const auto same = std::count_if(schema.arguments().begin(), schema.arguments().end(),
                                    [&](const Argument& other) { return other.name == one; });
    if (same > 1) return Failure{fmt::format("two arguments are called `{}`", one)};
  }
  return {};
}

/// Lists in lists, lists of unlikely lengths, and writing to what may be absent.
Result<void> judge_suffixes(const Argument& argument) {
  constexpr std::size_t kMostDigits = 2;
  const auto& suffixes = argument.type.suffixes;
  const bool nested =
      suffixes.size() > 2 || (suffixes.size() == 2 && suffixes[0].kind == suffixes[1].kind);
  const bool longs = std::any_of(suffixes.begin(), suffixes.end(), [](const Suffix& suffix) {
    return suffix.size.size() > kMostDigits;
  });
  if (nested || longs)
    return Failure{fmt::format("no C++ type is known for `{}`", argument.type.text())};
  if (argument.write() && !suffixes.empty() && suffixes.back().kind == Suffix::kOptional) {
    return Failure{fmt::format("`{}` may be absent, so it cannot be written to", argument.name)};
  }
  return {};
}

/// Whether a result with an alias is said to be an argument, or a view of one: `Tensor(a)` of
/// `Tensor(a)`, and a list of such of `Tensor(a -> *)`.
bool shares(const Argument& argument, const Return& result) {
  if (!argument.alias || result.write()) return argument.alias == result.alias;
  const std::string& letters = argument.alias->text;
  return !argument.write() && letters.substr(0, letters.find(" ->")) == result.alias->text;
}

}  // namespace

Result<void> judge_custom(const Schema& schema) {
  const auto arguments = schema.arguments();
  for (const Return& result : schema.returns()) {
    const bool known = !result.alias || std::any_of(arguments.begin(), arguments.end(),
                                                    [&](const Argument& argument) {
                                                      return shares(argument, result);
                                                    });
    if (!known && !result.write()) {
      return Failure{"its result shares memory with an argument, but no argument is marked so"};
    }
    if (!known)
      return Failure{"its result is said to be an argument, but no argument is marked so"};
    const auto& suffixes = result.type.suffixes;
    const bool list = !suffixes.empty() && suffixes.back().kind == Suffix::kList;
    if (list && (result.type.atom == Atom::kBool || result.type.atom == Atom::kScalar)) {
      return Failure{fmt::format("no C++ type is known for `{}`", result.type.text())};
    }
    if (python_type(result.type, true).empty()) {
      return Failure{fmt::format("no Python type is known for `{}`", result.type.text())};
    }
  }
  for (const Argument& argument : arguments) {
    if (auto good = judge_suffixes(argument); !good) return good;
    if (python_type(argument.type, false).empty()) {
      return Failure{fmt::format("no Python type is known for `{}`", argument.type.text())};
    }
    if (argument.value && python_default(*argument.value).empty()) {
      return Failure{fmt::format("the default of `{}` is no literal", argument.name)};
    }
    if (argument.value && !is_default(argument.type, *argument.value)) {
      return Failure{fmt::format("`{}` cannot be the default of `{}`, a `{}`", *argument.value,
                                 argument.name, argument.type.text())};
    }
  }
  const bool dispatched = std::any_of(arguments.begin(), arguments.end(), [](const Argument& one) {
    const auto& suffixes = one.type.suffixes;
    return one.type.atom == Atom::kTensor &&
           (suffixes.size() < 2 || (suffixes.size() == 2 && suffixes.back().kind == Suffix::kList &&
                                    suffixes.front().kind == Suffix::kOptional));
  });
  if (!dispatched)
    return Failure{"it has no tensor among its arguments, and PyTorch goes by their device"};
  const auto positional = schema.positional();
  for (std::size_t i = 1; i < positional.size(); ++i) {
    if (positional[i - 1].value && !positional[i].value) {
      return Failure{fmt::format("`{}` has no default, but the argument before it has one",
                                 positional[i].name)};
    }
  }
  if (auto good = judge_names(schema); !good) return good;
  const auto signature = custom_signature(schema);
  if (!signature) return Failure{signature.why()};
  return {};
}

}  // namespace backendgen
