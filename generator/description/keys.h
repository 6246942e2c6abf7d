// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "description/description.h"
#include "description/validate.h"

namespace backendgen {

/// The words of backend.toml for the values of an enum, in their order. The first is the default.
template <class Enum>
struct Words;
template <>
struct Words<Layout> {
  static constexpr const char* kWhat = "layout";
  static constexpr std::array<std::string_view, 2> kAll = {"package", "submodule"};
};
template <>
struct Words<OnFailure> {
  static constexpr const char* kWhat = "behaviour";
  static constexpr std::array<std::string_view, 2> kAll = {"warn", "error"};
};
template <>
struct Words<Fallback> {
  static constexpr const char* kWhat = "fallback";
  static constexpr std::array<std::string_view, 2> kAll = {"cpu", "error"};
};
template <>
struct Words<Inputs> {
  static constexpr const char* kWhat = "form of inputs";
  static constexpr std::array<std::string_view, 2> kAll = {"strided", "dense"};
};
template <>
struct Words<Unsupported> {
  static constexpr const char* kWhat = "answer";
  static constexpr std::array<std::string_view, 2> kAll = {"fallback", "error"};
};

template <class Enum>
constexpr std::string_view word_of(Enum value) {
  return Words<Enum>::kAll[static_cast<std::size_t>(value)];
}

/// What a text has to be.
struct Rule {
  const char* what;                                     // as in "`x` cannot be a device name"
  std::optional<Complaint> (*judge)(std::string_view);  // null where a reader of its own judges
  const char* schema;                                   // below $defs of the JSON Schema
};

/// The field that a key is read into: of the description, or of each kernel or custom operator.
/// Nothing for a key with a reader of its own.
using Field =
    std::variant<std::monostate, bool Description::*, Text Description::*,
                 std::vector<Text> Description::*, Layout Description::*, OnFailure Description::*,
                 Fallback Description::*, Text Kernel::*, Inputs Kernel::*, Unsupported Kernel::*,
                 std::vector<Text> Kernel::*, Text CustomOperator::*>;

/// A key of backend.toml. Texts may have `<name>` and `<display_name>`.
struct Key {
  std::string_view table;
  std::string_view name;
  Field field;
  const Rule* rule;          // of a text, or of each text of a list; null for an enum or a boolean
  std::string_view initial;  // the text that a description without the key has; empty: none
  std::string_view without;  // what that means, in words, where `initial` and enums do not say it
  std::string_view meaning;  // in Markdown, for docs/description.md and the JSON Schema
  std::string_view example;  // of a text
  bool required = false;
};

/// A table of backend.toml, such as "operators", and what it is for. The keys of "entry-points" are
/// the user's.
struct Table {
  std::string_view name;
  std::string_view meaning;
};

/// The tables, in the order in which they are listed to people.
std::span<const Table> tables();

/// The keys of a table, in that order. The table of one kernel is "operators.kernels", and that of
/// one custom operator "operators.custom".
std::vector<Key> keys_of(std::string_view table);

/// A key that is there: InternalError otherwise.
const Key& key_of(std::string_view table, std::string_view name);

/// The words that an enum's key may have; none for another key.
std::span<const std::string_view> words_of(const Key& key);

/// Whether a key of [operators] may stand in a kernel's own table too.
bool is_of_kernels(const Key& key);

/// Whether the value is a boolean.
bool is_boolean(const Key& key);

/// Whether the value is a list of texts.
bool is_list(const Key& key);

/// The names of these keys.
std::vector<std::string> names_of(const std::vector<Key>& keys);

/// A text of a key for a device: `torch_<name>` becomes `torch_foo`, and `<display_name>` becomes
/// `display`.
std::string for_device(std::string_view text, std::string_view name, std::string_view display = {});

/// Gives the field of a key what a description without the key has. Its name is known by then.
void set_default(const Key& key, Description& description);

}  // namespace backendgen
