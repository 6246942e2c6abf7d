// SPDX-License-Identifier: Apache-2.0
#include "torch/parse_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"

namespace backendgen {

namespace {

constexpr std::array<std::pair<std::string_view, Atom>, 19> kAtoms = {{
    {"Tensor", Atom::kTensor},
    {"int", Atom::kInt},
    {"SymInt", Atom::kSymInt},
    {"Scalar", Atom::kScalar},
    {"bool", Atom::kBool},
    {"float", Atom::kFloat},
    {"ScalarType", Atom::kScalarType},
    {"Layout", Atom::kLayout},
    {"Device", Atom::kDevice},
    {"str", Atom::kString},
    {"MemoryFormat", Atom::kMemoryFormat},
    {"Generator", Atom::kGenerator},
    {"Dimname", Atom::kDimname},
    {"SymBool", Atom::kSymBool},
    {"DeviceIndex", Atom::kDeviceIndex},
    {"Storage", Atom::kStorage},
    {"Stream", Atom::kStream},
    {"QScheme", Atom::kQScheme},
    {"DimVector", Atom::kDimVector},
}};

Atom atom_of(std::string_view name) {
  for (const auto& [known, atom] : kAtoms) {
    if (known == name) return atom;
  }
  return Atom::kOther;
}

/// Walks over a schema once, from left to right. Each `read_…` begins at the cursor and leaves it
/// after what it read; false once there is an error.
class Parser {
 public:
  Parser(std::string_view text, Span place, Diagnostics& problems)
      : text_(text), place_(place), problems_(problems) {}

  std::optional<Schema> schema() {
    const std::size_t open = text_.find('(');
    if (open == std::string_view::npos) return fail("expected `(`", text_.size());
    if (!check_name(open)) return std::nullopt;
    OperatorName name = OperatorName::parse(text_.substr(0, open));
    at_ = open + 1;
    std::vector<Argument> arguments;
    std::size_t positional = 0;
    if (!read_arguments(arguments, positional) || !expect(") -> ")) return std::nullopt;
    std::vector<Return> returns;
    if (!read_returns(returns)) return std::nullopt;
    if (at_ != text_.size()) return fail("expected the end of the schema", at_);
    return Schema(std::move(name), std::move(arguments), positional, std::move(returns));
  }

 private:
  std::nullopt_t fail(std::string message, std::size_t at) {
    Span span = place_;
    if (span.known()) {
      span.column += at;
      span.length = 1;
    }
    problems_.error(std::move(message), span);
    return std::nullopt;
  }

  bool refuse(std::string message) {
    fail(std::move(message), at_);
    return false;
  }

  bool next_is(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  bool take(std::string_view word) {
    if (!next_is(word)) return false;
    at_ += word.size();
    return true;
  }

  bool expect(std::string_view word) {
    return take(word) || refuse(fmt::format("expected `{}`", word));
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  /// `name` or `name.overload`.
  bool check_name(std::size_t end) {
    const std::size_t parts_begin = at_;
    if (word().empty()) return refuse("expected the name of an operator");
    if (is_digit(text_[parts_begin])) {
      at_ = parts_begin;
      return refuse("expected the name of an operator");
    }
    if (take(".") && word().empty()) return refuse("expected the name of an overload");
    return at_ == end || refuse("expected `(`");
  }

  bool read_type(Type& type, std::optional<Alias>& alias) {
    const std::size_t start = at_;
    do {
      if (word().empty()) return refuse("expected a type");
    } while (take("."));
    type.name = text_.substr(start, at_ - start);
    type.atom = atom_of(type.name);
    if (type.atom == Atom::kTensor && next_is("(") && !read_alias(alias)) return false;
    return read_suffixes(type);
  }

  bool read_alias(std::optional<Alias>& alias) {
    ++at_;
    const std::size_t start = at_;
    if (!read_alias_set(false)) return false;
    take("!");
    if (take(" -> ") && !read_alias_set(true)) return false;
    alias = Alias{std::string(text_.substr(start, at_ - start))};
    return expect(")");
  }

  /// `a`, `a|b`, and after an arrow `*` too.
  bool read_alias_set(bool after_arrow) {
    if (after_arrow && take("*")) return true;
    do {
      if (at_ >= text_.size() || text_[at_] < 'a' || text_[at_] > 'z') {
        return refuse("expected an alias: a letter");
      }
      ++at_;
    } while (take("|"));
    return true;
  }

  bool read_suffixes(Type& type) {
    for (;;) {
      if (take("?")) {
        type.suffixes.push_back({Suffix::kOptional, {}});
      } else if (take("[")) {
        const std::size_t start = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        type.suffixes.push_back({Suffix::kList, std::string(text_.substr(start, at_ - start))});
        if (!take("]")) return refuse("expected `]`; a list of int is `int[]`");
      } else {
        return true;
      }
    }
  }

  /// A default goes on to the next comma or parenthesis outside of quotes and brackets.
  bool read_value(std::optional<std::string>& value) {
    const std::size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      if (letter == '\'' || letter == '"') {
        if (!skip_quoted(letter)) return false;
        continue;
      }
      if (depth == 0 && (letter == ',' || letter == ')')) break;
      if (letter == '[' || letter == '(') ++depth;
      if (letter == ']' || letter == ')') --depth;
    }
    if (at_ == start) return refuse("expected a default");
    value = std::string(text_.substr(start, at_ - start));
    return true;
  }

  /// Leaves the cursor on the closing quote.
  bool skip_quoted(char quote) {
    const std::size_t start = at_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) return true;
      if (text_[at_] == '\\') ++at_;
    }
    at_ = start;
    return refuse("this quote has no end");
  }

  bool read_arguments(std::vector<Argument>& arguments, std::size_t& positional) {
    bool star = false;
    bool more = !next_is(")");
    while (more) {
      if (!star && take("*")) {
        star = true;
        positional = arguments.size();
        if (!next_is(", ")) return refuse("expected `, ` and a keyword-only argument");
      } else {
        Argument& argument = arguments.emplace_back();
        if (!read_type(argument.type, argument.alias)) return false;
        if (!take(" ")) return refuse("expected a space and the name of the argument");
        argument.name = word();
        if (argument.name.empty() || is_digit(argument.name.front())) {
          return refuse("expected the name of an argument");
        }
        if (take("=") && !read_value(argument.value)) return false;
        if (next_is(" =")) return refuse("expected `=` and a default right after the name");
      }
      more = take(", ");
      if (!more && take(",")) return refuse("expected a space after the comma");
    }
    if (!star) positional = arguments.size();
    return true;
  }

  bool read_returns(std::vector<Return>& returns) {
    if (take("()")) return true;
    const bool several = take("(");
    do {
      Return& result = returns.emplace_back();
      if (!read_type(result.type, result.alias)) return false;
      if (take(" ")) {
        result.name = word();
        if (result.name.empty() || is_digit(result.name.front())) {
          return refuse("expected the name of a return");
        }
      }
    } while (several && take(", "));
    if (several && returns.size() == 1)
      return refuse("expected `, ` and another return; a single one stands without `()`");
    return !several || expect(")");
  }

  std::string_view text_;
  Span place_;
  Diagnostics& problems_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Schema> parse_schema(std::string_view text, Span place, Diagnostics& problems) {
  return Parser(text, place, problems).schema();
}

}  // namespace backendgen
