// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/keys.h"

namespace backendgen {

/// The member of a table with this key; null when there is none, or no table.
const Member* find(const Value* table, std::string_view key);

/// Where a member stands: its key, or the head of a [table].
Span place(const Member& member);

/// Takes typed values out of a Document and reports those that are of another type, or refused by
/// their rule.
class ValueReader {
 public:
  explicit ValueReader(Diagnostics& problems) : problems_(problems) {}

  /// Reads the keys with a field of `Struct` that a table has; the others keep what they have. A
  /// null table has no keys. A wrong text leaves the field empty, a wrong word leaves it as it is.
  template <class Struct>
  void read(const Value* table, const std::vector<Key>& keys, Struct& into) {
    for (const Key& key : keys) {
      const Member* member = find(table, key.name);
      if (member == nullptr) continue;
      const auto read_into = [&](const auto field) {
        if constexpr (std::is_invocable_v<decltype(field), Struct&>) {
          read_value(*member, key, into.*field);
        }
      };
      std::visit(read_into, key.field);
    }
  }

  /// A string that a rule accepts. Empty when it is wrong.
  Text text(const Member& member, const Rule& rule);

  /// A list of such strings, none of them twice, without the wrong ones.
  std::vector<Text> texts(const Member& member, const Rule& rule);

  /// "`x` is a list, expected …".
  Diagnostic& wrong_type(const Member& member, const std::string& expected);

  /// An error about the value of a member.
  Diagnostic& wrong_value(const Member& member, const std::string& message);

  /// "unknown key `x` in …", for every member of a table whose key is not among `keys`.
  void refuse_unknown_keys(const Value& table, const std::string& where,
                           const std::vector<std::string>& keys);

  /// "`x` cannot be …: it starts with a digit".
  void cannot_be(const std::string& text, const Span& span, const char* what,
                 const Complaint& complaint);

 private:
  void read_value(const Member& member, const Key& key, Text& value) {
    value = text(member, *key.rule);
  }
  void read_value(const Member& member, const Key& key, std::vector<Text>& values) {
    values = texts(member, *key.rule);
  }
  void read_value(const Member& member, const Key&, bool& value) { value = boolean(member, value); }
  template <class Enum>
  void read_value(const Member& member, const Key&, Enum& value) {
    value = static_cast<Enum>(
        choice(member, Words<Enum>::kWhat, Words<Enum>::kAll, static_cast<std::size_t>(value)));
  }

  /// Whether a member is true; `otherwise` when it is no boolean.
  bool boolean(const Member& member, bool otherwise);

  /// Which of these words a member is; `otherwise` when it is wrong.
  std::size_t choice(const Member& member, const char* what,
                     std::span<const std::string_view> words, std::size_t otherwise);
  Text judged(const Value& value, const Rule& rule);

  Diagnostics& problems_;
};

/// Adds to an error about the unknown `word` the one of `known` that was most likely meant, or the
/// list of them; `what` they are, such as "keys".
void suggest_known(Diagnostic& problem, std::string_view word,
                   const std::vector<std::string>& known, const char* what);

}  // namespace backendgen
