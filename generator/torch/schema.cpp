// SPDX-License-Identifier: Apache-2.0
#include "torch/schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace backendgen {

namespace {

void append_type(std::string& text, const Type& type, const std::optional<Alias>& alias) {
  text += type.name;
  if (alias) text.append("(").append(alias->text).append(")");
  for (const Suffix& suffix : type.suffixes) {
    if (suffix.kind == Suffix::kOptional) {
      text += '?';
    } else {
      text.append("[").append(suffix.size).append("]");
    }
  }
}

void append(std::string& text, const Argument& argument) {
  append_type(text, argument.type, argument.alias);
  text.append(" ").append(argument.name);
  if (argument.value) text.append("=").append(*argument.value);
}

void append(std::string& text, const Return& result) {
  append_type(text, result.type, result.alias);
  if (!result.name.empty()) text.append(" ").append(result.name);
}

constexpr std::array<std::string_view, 11> kAugmented = {
    "add", "sub", "mul", "div", "mod", "pow", "lshift", "rshift", "and", "xor", "or"};

/// What stands between the underscores of `__and__`; empty for any other name.
std::string_view dunder(std::string_view base) {
  if (base.size() < 5 || !base.starts_with("__") || !base.ends_with("__")) return {};
  const std::string_view inner = base.substr(2, base.size() - 4);
  return inner.find('_') == std::string_view::npos ? inner : std::string_view{};
}

/// `and` of `iand`; empty for an operator that does not work in place.
std::string_view augmented(std::string_view inner) {
  if (!inner.starts_with('i')) return {};
  inner.remove_prefix(1);
  return std::find(kAugmented.begin(), kAugmented.end(), inner) == kAugmented.end()
             ? std::string_view{}
             : inner;
}

}  // namespace

std::string Type::text() const {
  std::string text;
  append_type(text, *this, std::nullopt);
  return text;
}

std::string Argument::text() const {
  std::string text;
  append(text, *this);
  return text;
}

std::string Return::text() const {
  std::string text;
  append(text, *this);
  return text;
}

OperatorName OperatorName::parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

std::string OperatorName::text() const {
  return overload.empty() ? base : base + '.' + overload;
}

bool OperatorName::inplace() const {
  const std::string_view inner = dunder(base);
  return inner.empty() ? base.ends_with('_') && base != "_" : !augmented(inner).empty();
}

std::string OperatorName::root() const {
  constexpr std::string_view kFunctional = "_functional";
  const std::string_view inner = dunder(base);
  if (!inner.empty()) {
    const std::string_view operation = augmented(inner);
    return operation.empty() ? base : fmt::format("__{}__", operation);
  }
  for (const std::string_view ending : {std::string_view("_"), kFunctional}) {
    if (base.ends_with(ending) && base != ending)
      return base.substr(0, base.size() - ending.size());
  }
  return base;
}

Schema::Schema(OperatorName name, std::vector<Argument> arguments, std::size_t positional,
               std::vector<Return> returns)
    : name_(std::move(name)),
      arguments_(std::move(arguments)),
      positional_(positional),
      out_(positional),
      returns_(std::move(returns)) {
  while (out_ < arguments_.size() && !arguments_[out_].write()) ++out_;
}

std::span<const Argument> Schema::positional() const {
  return arguments().first(positional_);
}

std::span<const Argument> Schema::keyword_only() const {
  return arguments().subspan(positional_, out_ - positional_);
}

std::span<const Argument> Schema::out() const {
  return arguments().subspan(out_);
}

bool Schema::writes() const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [](const Argument& argument) { return argument.write(); });
}

bool Schema::views() const {
  return std::any_of(returns_.begin(), returns_.end(),
                     [](const Return& result) { return result.alias && !result.write(); });
}

SchemaKind Schema::kind() const {
  if (name_.inplace()) return SchemaKind::kInplace;
  if (!out().empty()) return SchemaKind::kOut;
  for (const Argument& argument : positional()) {
    if (argument.name != "self" && argument.write()) return SchemaKind::kMutable;
  }
  return SchemaKind::kFunctional;
}

bool Schema::has_symint() const {
  const auto inputs = arguments().first(out_);
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Argument& argument) { return argument.type.atom == Atom::kSymInt; });
}

std::string Schema::text() const {
  std::string text = name_.text();
  text += '(';
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (i != 0) text += ", ";
    if (i == positional_) text += "*, ";
    append(text, arguments_[i]);
  }
  text += ") -> ";
  if (returns_.size() != 1) text += '(';
  for (std::size_t i = 0; i < returns_.size(); ++i) {
    if (i != 0) text += ", ";
    append(text, returns_[i]);
  }
  if (returns_.size() != 1) text += ')';
  return text;
}

std::optional<std::size_t> find_tensor_options(std::span<const Argument> arguments) {
  constexpr std::array<std::pair<std::string_view, Atom>, 4> kOptions = {{
      {"dtype", Atom::kScalarType},
      {"layout", Atom::kLayout},
      {"device", Atom::kDevice},
      {"pin_memory", Atom::kBool},
  }};
  const auto matches = [](const Argument& argument,
                          const std::pair<std::string_view, Atom>& option) {
    const auto& suffixes = argument.type.suffixes;
    const bool plain =
        suffixes.empty() || (suffixes.size() == 1 && suffixes.front().kind == Suffix::kOptional);
    return argument.name == option.first && argument.type.atom == option.second && plain;
  };
  const auto found =
      std::search(arguments.begin(), arguments.end(), kOptions.begin(), kOptions.end(), matches);
  if (found == arguments.end()) return std::nullopt;
  return static_cast<std::size_t>(found - arguments.begin());
}

}  // namespace backendgen
