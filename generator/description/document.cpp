// SPDX-License-Identifier: Apache-2.0
#include "description/document.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

// A distribution may have built toml++ as a library, with a limit of its own: here it is a header,
// and refuses values that are nested deeper than any description's, which would cost stack.
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include "base/utf8.h"
#include "description/statements.h"
#include "description/syntax_errors.h"

namespace backendgen {
namespace {

constexpr std::size_t kMostSyntaxErrors = 30;

using Path = std::vector<std::string>;

/// The byte column of a character column of toml++.
std::size_t byte_column(std::string_view line, std::size_t column) {
  const std::string_view before = line.substr(0, column - std::min<std::size_t>(column, 1));
  if (std::none_of(before.begin(), before.end(),
                   [](char c) { return static_cast<unsigned char>(c) > 127; })) {
    return std::min<std::size_t>(column, line.size() + 1);  // a byte is a character
  }
  std::size_t at = 0;
  for (std::size_t count = 1; count < column && at < line.size(); ++count) {
    at += character_at(line, at).bytes;
  }
  return at + 1;
}

std::size_t offset_of(const Source& source, const toml::source_position& place) {
  return source.offset(place.line, byte_column(source.line(place.line), place.column));
}

Span span_of(const Source& source, const toml::source_region& region) {
  if (region.begin.line == 0) return {};
  return source.span(offset_of(source, region.begin), offset_of(source, region.end));
}

Value convert(const Source& source, const toml::node& node) {
  Value value;
  value.span = span_of(source, node.source());
  if (const auto* text = node.as_string()) {
    value.kind = Value::Kind::kText;
    value.text = text->get();
  } else if (const auto* list = node.as_array()) {
    value.kind = Value::Kind::kList;
    for (const toml::node& item : *list) value.items.push_back(convert(source, item));
  } else if (const auto* table = node.as_table()) {
    std::vector<std::pair<Span, toml::table::const_iterator>> items;  // in file order
    items.reserve(table->size());
    for (auto item = table->begin(); item != table->end(); ++item) {
      items.emplace_back(span_of(source, item->first.source()), item);
    }
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    value.members.reserve(items.size());
    for (const auto& [span, item] : items) {
      value.members.push_back(
          {std::string(item->first.str()), span, convert(source, item->second)});
    }
  } else {
    value.truth = node.value_or(false);
    value.kind = node.is_integer()          ? Value::Kind::kInteger
                 : node.is_floating_point() ? Value::Kind::kFloat
                 : node.is_boolean()        ? Value::Kind::kBoolean
                                            : Value::Kind::kDate;
  }
  return value;
}

/// The path of keys in `text`, a table's head and a key without its value, as toml++ reads them.
Path path_in(const std::string& text) {
  Path path;
  try {
    const toml::table parsed = toml::parse(text);
    const toml::node* node = &parsed;
    while (true) {
      if (const auto* list = node->as_array(); list != nullptr && !list->empty())
        node = &list->back();
      const auto* table = node->as_table();
      if (table == nullptr || table->empty()) break;
      path.emplace_back(table->cbegin()->first.str());
      node = &table->cbegin()->second;
    }
  } catch (const toml::parse_error&) {
    path.clear();  // no path can be named; the caller says less
  }
  return path;
}

/// The member that a path leads to, or the nearest one above it, when it lies more than `above`
/// levels deep; null when there is none.
const Member* find(const Value& root, const Path& path, std::size_t above) {
  const Member* found = nullptr;
  const Value* value = &root;
  for (std::size_t depth = 0; depth < path.size(); ++depth) {
    if (!value->items.empty()) value = &value->items.front();
    const auto at = std::find_if(value->members.begin(), value->members.end(),
                                 [&](const Member& member) { return member.key == path[depth]; });
    if (at == value->members.end()) break;
    if (depth >= above) found = &*at;
    value = &at->value;
  }
  return found;
}

class Parser {
 public:
  Parser(const Source& source, Diagnostics& problems)
      : source_(source), problems_(problems), text_(source.text()) {}

  std::optional<Document> parse() {
    if (const std::size_t bad = find_invalid_utf8(text_); bad != text_.npos) {
      refuse_encoding(bad);
      return std::nullopt;
    }
    statements_ = split_statements(text_);
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      if (statements_[i].flaw == Flaw::kNone) continue;
      explain_flaw(source_, statements_[i], problems_);
      note_broken(statements_[i]);
      drop(i);
    }
    for (std::size_t errors = 0; errors < kMostSyntaxErrors; ++errors) {
      try {
        document_.root = convert(source_, toml::parse(text_));
        report_repetitions();
        return std::move(document_);
      } catch (const toml::parse_error& error) {
        if (!explain(error.description(), offset_of(source_, error.source().begin))) break;
      }
    }
    return std::nullopt;
  }

 private:
  void refuse_encoding(std::size_t bad) {
    Diagnostic& problem = problems_.error(
        fmt::format("the byte 0x{:02X} is not UTF-8", static_cast<unsigned char>(text_[bad])),
        source_.span(bad, bad + 1));
    problem.help.push_back("save the file in the encoding UTF-8");
    const std::string_view start = std::string_view(text_).substr(0, 2);
    if (start == "\xFF\xFE" || start == "\xFE\xFF") problem.notes.push_back("it is UTF-16");
  }

  /// Reports a syntax error and takes the statement out; false when no statement is to blame.
  bool explain(std::string_view reason, std::size_t at) {
    std::size_t i = statements_.size();
    while (i > 0 && statements_[i - 1].begin > at) --i;
    while (i > 0 && dropped(statements_[i - 1])) --i;
    if (i == 0) {
      problems_.error("this is not TOML", source_.span(at, at + 1));
      return false;
    }
    --i;
    // After brackets that were never closed the parser stops in the statement after them.
    if (i > 0 && statements_[i - 1].bracket != Statement::npos && !dropped(statements_[i - 1])) --i;
    if (reason.find("redefine") != reason.npos || reason.find("cannot insert") != reason.npos) {
      repeated_.push_back(i);
    } else {
      explain_syntax(source_, statements_[i], reason, at, problems_);
      note_broken(statements_[i]);
      // The rest of a text that was meant to go over lines.
      for (std::size_t rest = i + 1; statements_[i].quote != Statement::npos; ++rest) {
        if (rest == statements_.size() || statements_[rest].header) break;
        if (statements_[rest].equals != Statement::npos) break;
        drop(rest);
        if (statements_[rest].quote != Statement::npos) break;
      }
    }
    drop(i);
    return true;
  }

  bool dropped(const Statement& statement) const { return text_[statement.begin] == ' '; }

  /// Remembers the words before the "=": one of them is the key that is missing now.
  void note_broken(const Statement& statement) {
    if (statement.header) {
      document_.broken.push_back("[");
      return;
    }
    std::string word;
    for (std::size_t at = statement.begin; at < std::min(statement.equals, statement.end); ++at) {
      const char c = source_.text()[at];
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
        word += c;
      } else if (!word.empty()) {
        document_.broken.push_back(std::exchange(word, ""));
      }
    }
    if (!word.empty()) document_.broken.push_back(word);
  }

  /// Blanks a statement, and with a table's head all up to the next table.
  void drop(std::size_t i) {
    std::size_t end = statements_[i].end;
    if (statements_[i].header) {
      for (std::size_t next = i + 1; next < statements_.size() && !statements_[next].header;
           ++next) {
        end = statements_[next].end;
      }
    }
    for (std::size_t at = statements_[i].begin; at < end; ++at) {
      if (text_[at] != '\n') text_[at] = ' ';
    }
  }

  /// Keys and tables that are given twice: these need the whole document for the first place.
  void report_repetitions() {
    for (const std::size_t i : repeated_) {
      const Statement& statement = statements_[i];
      std::string_view text(source_.text());
      text = text.substr(statement.begin, statement.end - statement.begin);
      if (statement.header) {
        text = text.substr(0, text.find_last_of(']') + 1);
        report_repetition(text, statement, path_in(std::string(text)), 0);
        continue;
      }
      text = text.substr(0, statement.equals - statement.begin);
      text = text.substr(0, text.find_last_not_of(" \t") + 1);
      const std::string head = head_above(i);
      report_repetition(text, statement, path_in(head + std::string(text) + " = 0"),
                        path_in(head).size());
    }
  }

  std::string head_above(std::size_t i) const {
    while (i > 0 && !statements_[i - 1].header) --i;
    if (i == 0) return "";
    const Statement& head = statements_[i - 1];
    return source_.text().substr(head.begin, head.end - head.begin) + "\n";
  }

  void report_repetition(std::string_view key, const Statement& statement, const Path& path,
                         std::size_t head) {
    const Member* first = find(document_.root, path, head);
    if (first == nullptr) {
      problems_.error("a key is given twice in this table",
                      source_.span(statement.begin, statement.end));
      return;
    }
    const bool op = path.size() == 3 && path[0] == "operators" && path[1] == "kernels";
    const Span span = source_.span(statement.begin, statement.begin + key.size());
    if (op) {
      problems_.error(fmt::format("operator {} is listed twice", in_ticks(path[2])), span).earlier =
          Label{first->span, "first listed here"};
    } else {
      problems_.error(fmt::format("{} is given twice", in_ticks(key)), span).earlier =
          Label{statement.header ? first->value.span : first->span, "first given here"};
    }
  }

  const Source& source_;
  Diagnostics& problems_;
  std::string text_;
  std::vector<Statement> statements_;
  std::vector<std::size_t> repeated_;
  Document document_;
};

}  // namespace

bool Document::may_have_had(std::string_view key) const {
  return std::any_of(broken.begin(), broken.end(),
                     [&](const std::string& name) { return name == "[" || name == key; });
}

std::optional<Document> parse_document(const Source& source, Diagnostics& problems) {
  return Parser(source, problems).parse();
}

}  // namespace backendgen
