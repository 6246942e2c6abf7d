// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"

namespace backendgen {

struct Member;

/// A value of a TOML document and where it stands.
struct Value {
  enum class Kind { kText, kInteger, kFloat, kBoolean, kDate, kList, kTable };

  Kind kind = Kind::kTable;
  Span span;                    // of a [table], its header; unknown for the document itself
  std::string text;             // of a text
  bool truth = false;           // of a boolean
  std::vector<Value> items;     // of a list
  std::vector<Member> members;  // of a table, in file order
};

/// `key = value`, or a table and its name.
struct Member {
  std::string key;
  Span span;  // the key
  Value value;
};

/// A TOML document. When statements of it could not be read they are reported and missing here, so
/// that the rest can still be judged.
struct Document {
  Value root;
  std::vector<std::string> broken;  // the keys of missing statements; "[" for a missing table

  /// Whether the statement that is missing may have been `key`.
  bool may_have_had(std::string_view key) const;
};

/// Reads TOML. Adds every syntax error and every key given twice; empty when so much is wrong that
/// nothing else can be judged (not UTF-8, say).
std::optional<Document> parse_document(const Source& source, Diagnostics& problems);

}  // namespace backendgen
