// SPDX-License-Identifier: Apache-2.0
#include "torch/derive.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace backendgen {

namespace {

struct Pieces {
  std::vector<Argument> arguments;
  std::size_t positional = 0;
  std::vector<Return> returns;
};

/// The arguments without aliases, tensor options and outputs. `bernoulli.p` has no default for `p`
/// where its other variants have one; torchgen evens that out by name.
Pieces pure_arguments(const Schema& schema) {
  Pieces pure;
  pure.positional = schema.positional().size();
  const auto inputs = schema.arguments().first(schema.arguments().size() - schema.out().size());
  const auto options = find_tensor_options(schema.keyword_only());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (options && i >= pure.positional + *options && i < pure.positional + *options + 4) continue;
    Argument& argument = pure.arguments.emplace_back(inputs[i]);
    argument.alias.reset();
    if (argument.name == "p" && !argument.value && schema.name().text() == "bernoulli.p") {
      argument.value = "0.5";
    }
  }
  return pure;
}

/// The functional form of a schema: what it returns, then what it writes to without returning it.
Pieces pure_form(const Schema& schema, bool keep_names) {
  Pieces pure = pure_arguments(schema);
  for (const Return& result : schema.returns()) {
    pure.returns.push_back({keep_names ? result.name : "", result.type, std::nullopt});
  }
  const auto returned = [&](const Argument& argument) {
    const auto returns = schema.returns();
    return std::any_of(returns.begin(), returns.end(),
                       [&](const Return& result) { return result.alias == argument.alias; });
  };
  const auto add = [&](std::span<const Argument> arguments, bool self) {
    for (const Argument& argument : arguments) {
      if ((argument.name == "self") != self || !argument.write() || returned(argument)) continue;
      pure.returns.push_back({keep_names ? argument.name + "_out" : "", argument.type, {}});
    }
  };
  // torchgen's order. Group keys are compared with those of functional schemas from PyTorch's file,
  // so another order would split a group.
  add(schema.positional(), true);
  add(schema.out(), false);
  add(schema.positional(), false);
  return pure;
}

OperatorName out_name(const Schema& schema) {
  const OperatorName& name = schema.name();
  return {name.root(), name.overload.empty() ? "out" : name.overload + "_out"};
}

/// The letters that no argument of the schema uses as its alias.
std::string free_letters(const Schema& schema) {
  std::string letters = "abcdefghijklmnopqrstuvwxyz";
  for (const Argument& argument : schema.arguments()) {
    if (!argument.alias) continue;
    const std::string& text = argument.alias->text;
    const std::string before = text.substr(0, text.find(" -> "));
    std::erase_if(letters, [&](char letter) { return before.find(letter) != std::string::npos; });
  }
  return letters;
}

/// Adds an output for each returned tensor. They are returned, too, if all results are plain
/// tensors.
bool add_outputs(const Schema& schema, Pieces& pieces) {
  const auto returns = schema.returns();
  const auto is_tensor = [](const Return& result) { return result.type.tensor_like(); };
  if (std::none_of(returns.begin(), returns.end(), is_tensor)) return false;
  const bool plain = std::all_of(returns.begin(), returns.end(), [](const Return& result) {
    return result.type.is(Atom::kTensor);
  });
  const std::string letters = free_letters(schema);
  if (letters.size() < returns.size()) return false;
  pieces.returns.clear();
  for (std::size_t i = 0; i < returns.size(); ++i) {
    if (!is_tensor(returns[i])) {
      pieces.returns.push_back(returns[i]);
      continue;
    }
    const Alias alias{std::string(1, letters[i]) + '!'};
    std::string name = returns.size() == 1 ? "out" : fmt::format("out{}", i);
    pieces.arguments.push_back({std::move(name), returns[i].type, alias, {}});
    if (plain) pieces.returns.push_back({"", returns[i].type, alias});
  }
  return true;
}

Schema build(OperatorName name, Pieces pieces) {
  return Schema(std::move(name), std::move(pieces.arguments), pieces.positional,
                std::move(pieces.returns));
}

/// add_(Tensor(a!) self) → add.out(Tensor self, *, Tensor(a!) out)
std::optional<Schema> out_of_inplace(const Schema& schema) {
  const auto arguments = schema.arguments();
  Pieces pieces{{arguments.begin(), arguments.end()}, schema.positional().size(), {}};
  const auto self = std::find_if(pieces.arguments.begin(), pieces.arguments.end(),
                                 [](const Argument& argument) { return argument.name == "self"; });
  if (self == pieces.arguments.end()) return std::nullopt;
  Argument out{"out", self->type, self->alias, {}};
  self->alias.reset();
  pieces.arguments.push_back(std::move(out));
  pieces.returns.assign(schema.returns().begin(), schema.returns().end());
  return build(out_name(schema), std::move(pieces));
}

}  // namespace

std::string group_key(const Schema& schema) {
  return build({schema.name().root(), ""}, pure_form(schema, false)).text();
}

std::optional<Schema> derive_out(const Schema& schema) {
  switch (schema.kind()) {
    case SchemaKind::kOut:
      return std::nullopt;
    case SchemaKind::kInplace:
      return out_of_inplace(schema);
    case SchemaKind::kFunctional: {
      Pieces pieces = pure_arguments(schema);
      if (!add_outputs(schema, pieces)) return std::nullopt;
      return build(out_name(schema), std::move(pieces));
    }
    case SchemaKind::kMutable: {
      const auto arguments = schema.arguments();
      Pieces pieces{{arguments.begin(), arguments.end()}, schema.positional().size(), {}};
      if (!add_outputs(schema, pieces)) return std::nullopt;
      return build(out_name(schema), std::move(pieces));
    }
  }
  return std::nullopt;
}

std::optional<Schema> derive_functional(const Schema& schema) {
  if (schema.kind() == SchemaKind::kFunctional) return std::nullopt;
  const OperatorName& name = schema.name();
  std::string base = name.root();
  if (schema.kind() == SchemaKind::kMutable) base += "_functional";
  return build({std::move(base), name.overload}, pure_form(schema, true));
}

}  // namespace backendgen
