// SPDX-License-Identifier: Apache-2.0
#include "torch/catalog.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "torch/autocast_lists.h"
#include "torch/derive.h"
#include "torch/parse_schema.h"

namespace backendgen {

namespace {

/// Operators and the entries that they come from, in the same order.
struct Listed {
  std::vector<Operator> operators;
  std::vector<const NativeFunction*> functions;
};

bool parse_entries(const std::vector<NativeFunction>& functions, Listed& listed,
                   Diagnostics& problems) {
  const std::size_t errors = problems.error_count();
  std::unordered_set<std::string_view> names;
  for (const NativeFunction& function : functions) {
    auto schema = parse_schema(function.func, function.span, problems);
    if (!schema) continue;
    if (!names.insert(std::string_view(function.func).substr(0, function.func.find('('))).second) {
      problems.error(fmt::format("operator `{}` is listed twice", schema->name().text()),
                     function.span);
      continue;
    }
    Operator& op = listed.operators.emplace_back(std::move(*schema), function);
    // torchgen's rule for an operator without a dispatch table.
    op.composite_implicit |= !function.has_dispatch && !function.structured;
    listed.functions.push_back(&function);
  }
  return problems.error_count() == errors;
}

using Group = std::vector<std::size_t>;  // indices of operators, in file order

/// Whether torchgen heeds the `autogen` lines of a group. It ignores them for operators that are
/// made of others altogether, unless (since 2.6) they are core ones.
bool derives(const Group& group, const Listed& listed, const TorchVersion& release) {
  const auto any = [&](auto wanted) { return std::any_of(group.begin(), group.end(), wanted); };
  const bool named = any([&](std::size_t i) { return !listed.functions[i]->autogen.empty(); });
  const bool own = any([&](std::size_t i) { return !listed.operators[i].composite_implicit; });
  const bool core = any([&](std::size_t i) { return listed.functions[i]->core; });
  return named && (own || (core && release >= TorchVersion{2, 6, 0}));
}

/// The groups that variants are derived from.
std::vector<Group> autogen_groups(const Listed& listed, const TorchVersion& release) {
  std::unordered_set<std::string> roots;
  for (std::size_t i = 0; i < listed.operators.size(); ++i) {
    if (!listed.functions[i]->autogen.empty())
      roots.insert(listed.operators[i].schema.name().root());
  }
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> by_key;
  for (std::size_t i = 0; i < listed.operators.size(); ++i) {
    const Schema& schema = listed.operators[i].schema;
    if (!roots.contains(schema.name().root())) continue;
    const auto [found, is_new] = by_key.emplace(group_key(schema), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  std::erase_if(groups, [&](const Group& group) { return !derives(group, listed, release); });
  return groups;
}

/// The member of a group that torchgen derives the others from.
std::size_t base_of(const Group& group, const Listed& listed) {
  constexpr std::array kPreference = {SchemaKind::kMutable, SchemaKind::kInplace, SchemaKind::kOut,
                                      SchemaKind::kFunctional};
  for (const SchemaKind kind : kPreference) {
    for (const std::size_t i : group) {
      if (listed.operators[i].schema.kind() == kind) return i;
    }
  }
  return group.front();
}

/// Adds what the `autogen` lines of a group name; several of them may name the same operator.
void derive(const Group& group, const Listed& listed, std::vector<Operator>& derived,
            Diagnostics& problems) {
  const Operator& base = listed.operators[base_of(group, listed)];
  std::unordered_set<std::string> done;
  for (const std::size_t i : group) {
    for (const std::string& name : listed.functions[i]->autogen) {
      if (!done.insert(name).second) continue;
      const OperatorName wanted = OperatorName::parse(name);
      const bool out = wanted.overload.ends_with("out");
      auto schema = out ? derive_out(base.schema) : derive_functional(base.schema);
      if (!schema || schema->name().text() != name) {
        problems.error(fmt::format("`autogen` names `{}`, which does not follow from `{}`", name,
                                   base.schema.name().text()),
                       listed.functions[i]->span);
        continue;
      }
      Operator op(std::move(*schema));
      op.derived = true;
      op.base = base.schema.name().text();
      op.composite_explicit = true;
      op.const_ref_for_mutable = base.const_ref_for_mutable;
      derived.push_back(std::move(op));
    }
  }
}

}  // namespace

Catalog::Catalog(std::vector<Operator> operators) : operators_(std::move(operators)) {
  std::unordered_map<std::string, std::size_t> by_key;
  for (std::size_t i = 0; i < operators_.size(); ++i) {
    by_name_.emplace(operators_[i].schema.name().text(), i);
    const auto [found, is_new] = by_key.emplace(group_key(operators_[i].schema), groups_.size());
    if (is_new) groups_.emplace_back();
    group_of_.push_back(found->second);
    groups_[found->second].push_back(i);
  }
}

const Operator* Catalog::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &operators_[found->second];
}

std::vector<const Operator*> Catalog::group(const Operator& op) const {
  std::vector<const Operator*> group;
  const auto place = static_cast<std::size_t>(&op - operators_.data());
  for (const std::size_t i : groups_[group_of_.at(place)]) group.push_back(&operators_[i]);
  return group;
}

std::vector<std::string> Catalog::overloads(std::string_view base) const {
  std::vector<std::string> names;
  for (const Operator& op : operators_) {
    const OperatorName& name = op.schema.name();
    if (name.base == base) names.push_back(name.text());
  }
  return names;
}

std::optional<Catalog> make_catalog(const std::vector<NativeFunction>& functions,
                                    const TorchVersion& release, Diagnostics& problems) {
  Listed listed;
  if (!parse_entries(functions, listed, problems)) return std::nullopt;
  const std::size_t errors = problems.error_count();
  std::vector<Operator> derived;
  for (const Group& group : autogen_groups(listed, release)) {
    derive(group, listed, derived, problems);
  }
  if (problems.error_count() != errors) return std::nullopt;
  std::vector<Operator> operators = std::move(listed.operators);
  std::move(derived.begin(), derived.end(), std::back_inserter(operators));
  return Catalog(std::move(operators));
}

namespace {

std::optional<std::string> read_list(const TorchInstall& torch, const Disk& disk,
                                     Diagnostics& problems) {
  auto text = disk.read(torch.operators);
  if (text) return std::move(*text);
  problems.error(fmt::format("cannot read the operators of PyTorch: {}: {}",
                             in_ticks(torch.operators.generic_string()), text.why()));
  return std::nullopt;
}

std::optional<Catalog> parse_list(std::string text, const TorchInstall& torch,
                                  Diagnostics& problems) {
  const std::string path = torch.operators.generic_string();
  const Source source(path, std::move(text));
  Diagnostics found;
  std::optional<Catalog> catalog;
  if (const auto functions = read_native_functions(source, found)) {
    catalog = make_catalog(*functions, torch.version, found);
  }
  if (!found.has_errors()) return catalog;
  const Diagnostic first = found.sorted().front();
  Diagnostic& error =
      problems.error(fmt::format("the operator list of PyTorch is damaged: {}", first.message));
  error.notes.push_back(
      first.span.known() ? fmt::format("it is {}:{}:{}", path, first.span.line, first.span.column)
                         : fmt::format("it is {}", path));
  error.help.push_back("`python -m pip install --force-reinstall torch`");
  return std::nullopt;
}

}  // namespace

std::optional<Catalog> read_catalog(const TorchInstall& torch, const Disk& disk,
                                    Diagnostics& problems) {
  auto text = read_list(torch, disk, problems);
  return text ? parse_list(std::move(*text), torch, problems) : std::nullopt;
}

std::optional<Catalog> read_catalog_for(const std::vector<std::string>& names,
                                        const std::vector<std::string_view>& usual,
                                        const TorchInstall& torch, const Disk& disk,
                                        Diagnostics& problems) {
  auto text = read_list(torch, disk, problems);
  if (!text) return std::nullopt;
  std::unordered_set<std::string> roots;
  for (const std::string& name : names) roots.insert(OperatorName::parse(name).root());
  for (const std::string_view name : usual) roots.insert(OperatorName::parse(name).root());
  Diagnostics ignored;  // of a damaged list the whole tells
  auto part = parse_list(entries_of(*text, roots), torch, ignored);
  const bool has_all = part && std::all_of(names.begin(), names.end(), [&](const auto& name) {
                         return part->find(name) != nullptr;
                       });
  return has_all ? std::move(part) : parse_list(std::move(*text), torch, problems);
}

}  // namespace backendgen
