// SPDX-License-Identifier: Apache-2.0
// The text of a native_functions.yaml: reading it, the catalog, and the excerpt for some operators.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "../unit/fake_disk.h"
#include "check.h"
#include "glue/check_operators.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"
#include "torch/native_functions.h"

using namespace backendgen;
using fuzz::require;

namespace {

constexpr const char* kPath = "/native_functions.yaml";

/// All that backends need of an operator, as one text.
std::string summary(const Operator& op) {
  const auto signature = cpp_signature(op, SymInts::kNumbers);
  std::string text =
      op.schema.text() + (op.derived ? " derived" : "") + (op.structured ? " structured" : "") +
      (op.composite_implicit ? " implicit" : "") + (op.const_ref_for_mutable ? " const" : "");
  return text + " " + (signature ? signature->type() : signature.why());
}

std::string summary(const NativeFunction& function) {
  std::string text = function.func + (function.structured ? " structured" : "") +
                     (function.has_dispatch ? " dispatch" : "") +
                     (function.composite_implicit ? " implicit" : "") +
                     (function.const_ref_for_mutable ? " const" : "") +
                     (function.core ? " core" : "");
  for (const std::string& name : function.autogen) text += " " + name;
  return text;
}

std::string name_of(const NativeFunction& function) {
  return function.func.substr(0, function.func.find('('));
}

/// Whether every line that begins like an entry is one, so that the text can be cut by lines: no
/// text in quotes goes over several of them, no entry has two schemas.
bool as_usual(const Source& source, const std::vector<NativeFunction>& functions) {
  std::size_t begun = 0;
  char before = '\n';
  for (const char letter : source.text()) {
    begun += before == '\n' && letter == '-';
    before = letter;
  }
  return begun == functions.size() &&
         std::all_of(functions.begin(), functions.end(), [&](const NativeFunction& function) {
           return source.line(function.span.line).starts_with("- ");
         });
}

/// The first, the middle and the last of some names.
std::vector<std::string> chosen(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {names.front(), names[names.size() / 2], names.back()};
}

void require_excerpt(const Source& source, const std::vector<NativeFunction>& functions) {
  std::map<std::string, std::vector<std::string>> by_root;
  std::vector<std::string> roots;
  for (const NativeFunction& function : functions) {
    roots.push_back(OperatorName::parse(name_of(function)).root());
    by_root[roots.back()].push_back(summary(function));
  }
  for (const std::string& root : chosen(roots)) {
    const Source part(source.path(), entries_of(source.text(), {root}));
    Diagnostics problems;
    const auto found = read_native_functions(part, problems);
    require(found.has_value(), "an excerpt can be read", part.text());
    std::vector<std::string> same;
    for (const NativeFunction& function : *found) {
      if (OperatorName::parse(name_of(function)).root() == root) same.push_back(summary(function));
    }
    require(same == by_root.at(root), "an excerpt has every entry of its root", part.text());
  }
}

/// What `generate` reads for a few operators is what it would read of the whole list.
void require_same_operators(const FakeDisk& disk, const TorchInstall& torch,
                            const Catalog& catalog) {
  std::vector<std::string> names;
  for (const Operator& op : catalog.operators()) names.push_back(op.schema.name().text());
  for (const std::string& name : chosen(names)) {
    Description description;
    description.kernels.push_back({{name, {}}, {"foo::kernel", {}}});
    Diagnostics problems;
    const auto part = read_catalog_for({name}, {}, torch, disk, problems);
    require(part.has_value() && !problems.has_errors(), "a valid list can be read in part", name);
    const Operator* op = part->find(name);
    require(op != nullptr, "every operator is found", name);
    require(summary(*op) == summary(*catalog.find(name)), "operators do not depend on others",
            summary(*op));
    check_operators(description, *part, torch, problems);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const Source source(kPath, text);
  Diagnostics problems;
  const auto functions = read_native_functions(source, problems);
  require(functions.has_value() == !problems.has_errors(), "no list means an error");
  fuzz::require_shown(problems, source);
  if (functions && as_usual(source, *functions)) require_excerpt(source, *functions);

  FakeDisk disk;
  disk.files[kPath] = text;
  for (const TorchVersion version : {TorchVersion{2, 5, 0}, TorchVersion{2, 13, 0}}) {
    const TorchInstall torch{"/torch", kPath, version};
    Diagnostics found;
    const auto catalog = read_catalog(torch, disk, found);
    require(catalog.has_value() == !found.has_errors(), "no catalog means an error");
    require(!catalog || functions, "no catalog without a list");
    fuzz::require_shown(found, source);
    if (catalog) require_same_operators(disk, torch, *catalog);
  }
  return 0;
}
