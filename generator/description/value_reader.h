// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "description/description.h"
#include "description/document.h"
#include "description/validate.h"

namespace backendgen {

/// Takes typed values out of a Document and reports those that are of another type, or refused by
/// their rule.
class ValueReader {
 public:
  using Judge = std::optional<Complaint> (*)(std::string_view);

  explicit ValueReader(Diagnostics& problems) : problems_(problems) {}

  /// A string that `judge` accepts; `what` ends "`x` cannot be …". Empty when the member is null,
  /// or wrong.
  Text text(const Member* member, const char* what, Judge judge);

  /// A list of such strings, none of them twice, without the wrong ones.
  std::vector<Text> texts(const Member* member, const char* what, Judge judge);

  /// Which of two words a member is; `otherwise` when it is null, or wrong. `what` follows
  /// "unknown".
  std::size_t choice(const Member* member, const char* what, const std::vector<std::string>& words,
                     std::size_t otherwise);

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
  Text judged(const Value& value, const char* what, Judge judge);

  Diagnostics& problems_;
};

/// Adds to an error about the unknown `word` the one of `known` that was most likely meant, or the
/// list of them; `what` they are, such as "keys".
void suggest_known(Diagnostic& problem, std::string_view word,
                   const std::vector<std::string>& known, const char* what);

/// The member of a table with this key; null when there is none, or no table.
const Member* find(const Value* table, std::string_view key);

/// Where a member stands: its key, or the head of a [table].
Span place(const Member& member);

}  // namespace backendgen
