// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace backendgen {

/// Why something did not work, as an error ends: "Permission denied".
struct Failure {
  std::string why;
};

/// What a step gives, or why it did not work. Nothing else in the program says that it did not.
template <class Value>
class [[nodiscard]] Result {
 public:
  Result(Value value) : held_(std::move(value)) {}
  Result(Failure failure) : held_(std::move(failure)) {}

  explicit operator bool() const { return held_.index() == 0; }

  /// The value. Throws std::bad_variant_access if there is none.
  const Value& operator*() const { return std::get<0>(held_); }
  Value& operator*() { return std::get<0>(held_); }
  const Value* operator->() const { return &**this; }
  Value* operator->() { return &**this; }

  /// The value, or `otherwise`.
  Value value_or(Value otherwise) const { return *this ? **this : std::move(otherwise); }

  /// Throws std::bad_variant_access if it worked.
  const std::string& why() const { return std::get<1>(held_).why; }

 private:
  std::variant<Value, Failure> held_;
};

/// A step that gives nothing: `return {}` says that it worked.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}

  explicit operator bool() const { return !failure_.has_value(); }

  /// Throws std::bad_optional_access if it worked.
  const std::string& why() const { return failure_.value().why; }

 private:
  std::optional<Failure> failure_;
};

}  // namespace backendgen
