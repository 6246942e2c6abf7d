// SPDX-License-Identifier: Apache-2.0
#include "torch/cpp_types.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "torch/parse_schema.h"

namespace backendgen {

namespace {

using Suffixes = std::span<const Suffix>;

/// The types that are passed by value.
constexpr std::array<std::pair<Atom, std::string_view>, 17> kValueTypes = {{
    {Atom::kInt, "int64_t"},
    {Atom::kSymInt, "c10::SymInt"},
    {Atom::kFloat, "double"},
    {Atom::kBool, "bool"},
    {Atom::kSymBool, "c10::SymBool"},
    {Atom::kString, "c10::string_view"},
    {Atom::kScalarType, "at::ScalarType"},
    {Atom::kLayout, "at::Layout"},
    {Atom::kDevice, "at::Device"},
    {Atom::kDeviceIndex, "at::DeviceIndex"},
    {Atom::kMemoryFormat, "at::MemoryFormat"},
    {Atom::kGenerator, "at::Generator"},
    {Atom::kStorage, "at::Storage"},
    {Atom::kStream, "at::Stream"},
    {Atom::kQScheme, "at::QScheme"},
    {Atom::kDimname, "at::Dimname"},
    {Atom::kDimVector, "at::DimVector"},
}};

/// Empty for a type that is not passed by value.
std::string_view value_type(Atom atom, bool symbolic) {
  if (atom == Atom::kSymInt && !symbolic) atom = Atom::kInt;
  for (const auto& [one, type] : kValueTypes) {
    if (one == atom) return type;
  }
  return {};
}

std::string optional_of(const std::string& type) {
  return type.empty() ? type : fmt::format("std::optional<{}>", type);
}

/// Translates the types of one operator. Each function takes an atom and its suffixes, of which the
/// last is the outermost, and returns an empty text for what has no C++ type.
class Translator {
 public:
  Translator(const Operator& op, SymInts symints)
      : structured_(op.structured),
        const_ref_(op.const_ref_for_mutable),
        symbolic_(symints == SymInts::kSymbolic) {}

  std::string argument(Atom atom, Suffixes suffixes, bool write) const {
    std::string value = by_value(atom, suffixes, symbolic_);
    if (!value.empty()) return value;
    if (suffixes.empty()) return plain(atom, write);
    const Suffixes inner = suffixes.first(suffixes.size() - 1);
    return suffixes.back().kind == Suffix::kOptional ? optional(atom, inner, write)
                                                     : list(atom, inner, write);
  }

  std::string result(Atom atom, Suffixes suffixes, bool write) const {
    std::string value = by_value(atom, suffixes, true);
    if (!value.empty()) return value;
    if (suffixes.empty()) {
      if (atom == Atom::kScalar) return "at::Scalar";
      if (atom != Atom::kTensor) return {};
      if (!write) return "at::Tensor";
      return const_ref_ ? "const at::Tensor&" : "at::Tensor&";
    }
    const Suffixes inner = suffixes.first(suffixes.size() - 1);
    if (suffixes.back().kind == Suffix::kOptional) {
      const bool tensor = inner.empty() && atom == Atom::kTensor && !write;
      return tensor ? "std::optional<at::Tensor>" : "";
    }
    if (write || !suffixes.back().size.empty()) return {};
    const std::string element = result(atom, inner, false);
    return element.empty() ? element : fmt::format("std::vector<{}>", element);
  }

 private:
  static std::string by_value(Atom atom, Suffixes suffixes, bool symbolic) {
    if (suffixes.empty()) return std::string(value_type(atom, symbolic));
    const Suffixes inner = suffixes.first(suffixes.size() - 1);
    if (suffixes.back().kind == Suffix::kOptional) {
      return optional_of(by_value(atom, inner, symbolic));
    }
    const std::string& size = suffixes.back().size;
    if (atom != Atom::kBool || !inner.empty() || size.empty()) return {};
    return fmt::format("std::array<bool, {}>", size);
  }

  std::string plain(Atom atom, bool write) const {
    if (atom == Atom::kScalar) return "const at::Scalar&";
    if (atom != Atom::kTensor) return {};
    return write && !const_ref_ ? "at::Tensor&" : "const at::Tensor&";
  }

  std::string optional(Atom atom, Suffixes inner, bool write) const {
    if (inner.empty() && atom == Atom::kTensor) {
      return write && !const_ref_ ? "at::Tensor&" : "const std::optional<at::Tensor>&";
    }
    if (inner.empty() && atom == Atom::kScalar) return "const std::optional<at::Scalar>&";
    if (inner.size() == 1 && inner.back().kind == Suffix::kList) {
      if (atom == Atom::kInt) return "at::OptionalIntArrayRef";
      if (atom == Atom::kSymInt) {
        return symbolic_ ? "at::OptionalSymIntArrayRef" : "at::OptionalIntArrayRef";
      }
    }
    return optional_of(argument(atom, inner, write));
  }

  std::string list(Atom atom, Suffixes inner, bool write) const {
    if (inner.empty()) {
      if (atom == Atom::kInt) return "at::IntArrayRef";
      if (atom == Atom::kSymInt) return symbolic_ ? "c10::SymIntArrayRef" : "at::IntArrayRef";
      if (atom == Atom::kTensor) {
        return structured_ ? "const at::ITensorListRef&" : "at::TensorList";
      }
      if (atom == Atom::kScalar) return "at::ArrayRef<at::Scalar>";
      if (atom == Atom::kDimname) return "at::DimnameList";
      // A list of any length has no C++ type for booleans: std::vector<bool> has no array inside.
      if (atom == Atom::kBool) return {};
    }
    if (atom == Atom::kTensor && inner.size() == 1 && inner.back().kind == Suffix::kOptional) {
      return "const c10::List<std::optional<at::Tensor>>&";
    }
    const std::string element = argument(atom, inner, write);
    return element.empty() ? element : fmt::format("at::ArrayRef<{}>", element);
  }

  bool structured_;
  bool const_ref_;
  bool symbolic_;
};

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

/// What `add` appends for each parameter, with commas between.
template <class Add>
std::string listing(const std::vector<Parameter>& parameters, const Add& add) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    add(parameter, text);
  }
  return text;
}

}  // namespace

std::string Signature::type() const {
  std::string text = return_type + " (";
  text += listing(parameters, [](const Parameter& one, std::string& types) { types += one.type; });
  return text += ')';
}

std::string Signature::declaration() const {
  return listing(parameters, [](const Parameter& one, std::string& text) {
    text += one.type;
    text += ' ';
    text += one.name;
  });
}

std::string Signature::arguments() const {
  return listing(parameters, [](const Parameter& one, std::string& text) { text += one.name; });
}

std::string Signature::head(const std::string& function, std::size_t more) const {
  constexpr std::size_t kColumns = 100;
  const std::string begin = return_type + ' ' + function + '(';
  std::string text = begin + declaration() + ')';
  if (text.size() + more <= kColumns) return text;
  text = begin;
  for (const Parameter& parameter : parameters) {
    if (text.size() != begin.size()) text += ',';
    text.append("\n    ").append(parameter.type).append(" ").append(parameter.name);
  }
  return text += ')';
}

namespace {

Failure no_type(const std::string& type) {
  return {fmt::format("no C++ type is known for `{}`", type)};
}

}  // namespace

Result<Signature> cpp_signature(const Operator& op, SymInts symints) {
  const Translator translator(op, symints);
  Signature signature;
  signature.parameters.reserve(op.schema.arguments().size());
  for (const Argument& argument : op.schema.arguments()) {
    const Type& type = argument.type;
    std::string text = translator.argument(type.atom, type.suffixes, argument.write());
    if (text.empty()) return no_type(type.text());
    signature.parameters.push_back({std::move(text), argument.name});
  }
  std::vector<std::string> results;
  for (const Return& result : op.schema.returns()) {
    const Type& type = result.type;
    results.push_back(translator.result(type.atom, type.suffixes, result.write()));
    if (results.back().empty()) return no_type(type.text());
  }
  if (results.empty()) signature.return_type = "void";
  if (results.size() == 1) signature.return_type = std::move(results.front());
  if (results.size() > 1) signature.return_type = fmt::format("std::tuple<{}>", join(results));
  return signature;
}

namespace {

/// The type of an argument of a structured kernel.
std::string structured_type(const Argument& argument, const Translator& translator) {
  const Type& type = argument.type;
  const auto is = [&](Atom atom, std::initializer_list<Suffix> suffixes) {
    return type.atom == atom &&
           std::equal(type.suffixes.begin(), type.suffixes.end(), suffixes.begin(), suffixes.end());
  };
  const Suffix optional{Suffix::kOptional, ""};
  if (type.is(Atom::kTensor)) return "const at::Tensor&";
  if (is(Atom::kTensor, {optional})) return "at::OptionalTensorRef";
  if (is(Atom::kScalar, {optional})) return "at::OptionalScalarRef";
  if (is(Atom::kTensor, {optional, {Suffix::kList, ""}})) return "at::IOptTensorListRef";
  return translator.argument(type.atom, type.suffixes, false);
}

/// What the `precomputed` lines of a structured operator say.
struct Precomputed {
  std::map<std::string, std::vector<Argument>, std::less<>> instead;  // by the argument's name
  std::vector<Argument> added;                                        // after all of them
};

/// Reads "dim -> int dim, int valid", or "int valid" for what comes after the arguments.
std::optional<Precomputed> read_precomputed(const std::vector<std::string>& lines) {
  constexpr std::string_view kArrow = " -> ";
  Precomputed result;
  for (const std::string& line : lines) {
    const std::size_t arrow = line.find(kArrow);
    const bool adds = arrow == std::string::npos;
    const std::string list = adds ? line : line.substr(arrow + kArrow.size());
    // A list of arguments can only be parsed as part of a schema.
    Diagnostics ignored;
    const auto schema = parse_schema(fmt::format("f({}) -> ()", list), {1, 1, 1}, ignored);
    if (!schema) return std::nullopt;
    auto& target = adds ? result.added : result.instead[line.substr(0, arrow)];
    target.insert(target.end(), schema->arguments().begin(), schema->arguments().end());
  }
  return result;
}

}  // namespace

Result<Signature> custom_signature(const Schema& schema) {
  Operator op{schema};
  // A view is made of calls of PyTorch's operators, also while sizes are symbolic.
  return cpp_signature(op, schema.views() ? SymInts::kSymbolic : SymInts::kNumbers);
}

Result<StructuredSignature> structured_signature(const Operator& out) {
  const auto precomputed = read_precomputed(out.precomputed);
  if (!precomputed) return no_type(fmt::format("{}", fmt::join(out.precomputed, "; ")));
  const Translator translator(out, SymInts::kNumbers);
  StructuredSignature signature;
  std::string unknown;
  const auto parameter = [&](const Argument& argument) {
    Parameter result{structured_type(argument, translator), argument.name};
    if (result.type.empty()) unknown = argument.type.text();
    return result;
  };
  const auto add = [&](Parameter one, bool is_precomputed) {
    signature.kernel.push_back(std::move(one));
    signature.precomputed.push_back(is_precomputed);
  };
  const auto arguments = out.schema.arguments();
  const std::size_t inputs = arguments.size() - out.schema.out().size();
  for (const Argument& argument : arguments.first(inputs)) {
    signature.meta.push_back(parameter(argument));
    const auto instead = precomputed->instead.find(argument.name);
    if (instead == precomputed->instead.end() || argument.type.tensor_like()) {
      add(signature.meta.back(), false);
    }
    if (instead == precomputed->instead.end()) continue;
    for (const Argument& one : instead->second) add(parameter(one), true);
  }
  for (const Argument& one : precomputed->added) add(parameter(one), true);
  for (const Argument& argument : out.schema.out()) {
    add({"const at::Tensor&", argument.name}, false);
  }
  if (!unknown.empty()) return no_type(unknown);
  return signature;
}

std::vector<std::size_t> device_order(const Schema& schema) {
  const auto arguments = schema.arguments();
  const std::size_t positional = schema.positional().size();
  const std::size_t out = arguments.size() - schema.out().size();
  std::vector<std::size_t> order;
  if (const auto options = find_tensor_options(schema.keyword_only())) {
    order.push_back(positional + *options + 2);
  }
  const auto add = [&](std::size_t begin, std::size_t end, auto wanted) {
    for (std::size_t i = begin; i < end; ++i) {
      if (arguments[i].type.tensor_like() && wanted(arguments[i])) order.push_back(i);
    }
  };
  const auto is_self = [](const Argument& argument) { return argument.name == "self"; };
  add(0, positional, is_self);
  add(out, arguments.size(), [](const Argument&) { return true; });
  add(0, positional, [&](const Argument& argument) { return !is_self(argument); });
  return order;
}

std::vector<std::string_view> cpp_headers(const Signature& signature) {
  // ATen/core/Tensor.h declares the types that are not listed here.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kHeaders = {{
      {"at::Generator", "ATen/core/Generator.h"},
      {"at::ITensorListRef", "ATen/core/IListRef.h"},
      {"at::IOptTensorListRef", "ATen/core/IListRef.h"},
      {"c10::List<", "ATen/core/List.h"},
      {"at::Dimname", "ATen/core/Dimname.h"},
      {"at::DimVector", "ATen/core/DimVector.h"},
      {"at::Stream", "c10/core/Stream.h"},
      {"std::array<", "array"},
      {"std::tuple<", "tuple"},
  }};
  std::vector<std::string_view> headers = {"ATen/core/Tensor.h"};
  const auto add_those_of = [&](const std::string& type) {
    for (const auto& [part, header] : kHeaders) {
      if (type.find(part) != std::string::npos) headers.push_back(header);
    }
  };
  add_those_of(signature.return_type);
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.type != "const at::Tensor&") add_those_of(parameter.type);
  }
  std::sort(headers.begin(), headers.end());
  headers.erase(std::unique(headers.begin(), headers.end()), headers.end());
  return headers;
}

}  // namespace backendgen
