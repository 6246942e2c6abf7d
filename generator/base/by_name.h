// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backendgen {

/// A few values by name, in the order in which they came: for so few, and for so many of these,
/// quicker than a tree. Names are literals: the text of one must outlive this.
template <class Value>
class ByName {
 public:
  using Item = std::pair<std::string_view, Value>;

  ByName() = default;
  ByName(std::initializer_list<Item> items) : items_(items) {}

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  const Value* find(std::string_view name) const {
    for (const Item& item : items_) {
      if (item.first == name) return &item.second;
    }
    return nullptr;
  }

  /// Throws std::out_of_range.
  const Value& at(std::string_view name) const {
    if (const Value* value = find(name)) return *value;
    throw std::out_of_range(std::string(name));
  }

  /// Adds an empty value where there is none of this name.
  Value& operator[](std::string_view name) {
    for (Item& item : items_) {
      if (item.first == name) return item.second;
    }
    return items_.emplace_back(name, Value()).second;
  }

  /// Adds a value whose name is new.
  void add(std::string_view name, Value value) { items_.emplace_back(name, std::move(value)); }

 private:
  std::vector<Item> items_;
};

}  // namespace backendgen
