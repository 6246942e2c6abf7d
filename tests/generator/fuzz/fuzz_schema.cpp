// SPDX-License-Identifier: Apache-2.0
// Schema text: parsing, printing, the C++ signature, and the variants that follow from it.
#include <algorithm>
#include <set>
#include <string>

#include "check.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"
#include "torch/derive.h"
#include "torch/parse_schema.h"

using namespace backendgen;
using fuzz::require;

namespace {

std::optional<Schema> parsed(std::string_view text) {
  Diagnostics problems;
  return parse_schema(text, {1, 1, std::max<std::size_t>(text.size(), 1)}, problems);
}

bool balanced(std::string_view type) {
  int depth = 0;
  for (const char letter : type) {
    if (letter == '<' || letter == '(') ++depth;
    if (letter == '>' || letter == ')') --depth;
    if (depth < 0) return false;
  }
  return depth == 0;
}

void require_signatures(const Schema& schema) {
  for (const int bits : {0, 1, 2, 3}) {
    Operator op{schema};
    op.structured = (bits & 1) != 0;
    op.const_ref_for_mutable = (bits & 2) != 0;
    for (const SymInts symints : {SymInts::kSymbolic, SymInts::kNumbers}) {
      const auto signature = cpp_signature(op, symints);
      if (!signature) {
        require(!signature.why().empty(), "what has no C++ type is named", schema.text());
        continue;
      }
      require(signature->parameters.size() == schema.arguments().size(),
              "every argument is a parameter", signature->type());
      require(balanced(signature->type()), "C++ types have both brackets", signature->type());
      require(!cpp_headers(*signature).empty(), "C++ types have headers", signature->type());
    }
  }
  const auto order = device_order(schema);
  const std::set<std::size_t> positions(order.begin(), order.end());
  require(positions.size() == order.size(), "device_order names an argument once", schema.text());
  require(positions.empty() || *positions.rbegin() < schema.arguments().size(),
          "device_order stays within the arguments", schema.text());
}

/// A derived schema is one like any other: its text parses, and prints back.
void require_schema(const std::optional<Schema>& derived) {
  if (!derived) return;
  const std::string text = derived->text();
  const auto again = parsed(text);
  require(again.has_value(), "derived schemas parse", text);
  require(again->text() == text, "derived schemas round-trip", text);
  require(again->kind() == derived->kind(), "derived schemas keep their kind", text);
  require_signatures(*derived);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const Source source("schema", text);
  Diagnostics problems;
  const auto schema = parse_schema(source.text(), source.span(0, source.text().size()), problems);
  require(schema.has_value() == (problems.error_count() == 0), "no schema means an error");
  require(problems.error_count() <= 1, "a schema has one error");
  if (!schema) {
    if (text.find_first_of("\r\n") == text.npos) fuzz::require_shown(problems, source);
    return 0;
  }
  require(schema->text() == source.text(), "schemas round-trip", schema->text());
  require(schema->positional().size() + schema->keyword_only().size() + schema->out().size() ==
              schema->arguments().size(),
          "every argument is in one of three parts", schema->text());
  require_signatures(*schema);
  require(!group_key(*schema).empty(), "groups have a key");
  const auto out = derive_out(*schema);
  require(!out || schema->kind() != SchemaKind::kOut, "out= follows from other kinds", text);
  require_schema(out);
  const auto functional = derive_functional(*schema);
  require(functional.has_value() == (schema->kind() != SchemaKind::kFunctional),
          "every other kind has a functional variant", text);
  require_schema(functional);
  return 0;
}
