// SPDX-License-Identifier: Apache-2.0
#include "description/syntax_errors.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/utf8.h"

namespace backendgen {
namespace {

constexpr std::string_view kBlanks = " \t\r";

class Explainer {
 public:
  Explainer(const Source& source, const Statement& statement, Diagnostics& problems)
      : source_(source), text_(source.text()), statement_(statement), problems_(problems) {}

  void flaw() {
    const Character found = character_at(text_, statement_.flaw_at);
    switch (statement_.flaw) {
      case Flaw::kControl:
        error(fmt::format("the control character {} is not allowed here", code_name(found.code)),
              statement_.flaw_at, statement_.flaw_at + 1);
        return;
      case Flaw::kDots:
        error("too many dots in one line", statement_.flaw_at, statement_.flaw_at + 1);
        return;
      case Flaw::kBrace:
        error("expected `,` or `]`, found `}`", statement_.flaw_at, statement_.flaw_at + 1);
        return;
      case Flaw::kLongKey:
        error("a key cannot stand in three quotes", statement_.flaw_at, statement_.flaw_at + 3);
        return;
      case Flaw::kBackslash:
        error("a backslash cannot stand before a character beyond ASCII", statement_.flaw_at,
              statement_.flaw_at + 1)
            .help.push_back("put the text on one line, and write a backslash itself as `\\\\`");
        return;
      case Flaw::kHead:
        explain_header(std::min(statement_.flaw_at, statement_.end));
        return;
      default:
        break;
    }
    if (statement_.equals < statement_.flaw_at && !text_at_value_is_quoted()) {
      bare_value(value(), statement_.end);
      return;
    }
    Diagnostic& problem = error(fmt::format("unexpected {} outside quotes", name(found)),
                                statement_.flaw_at, statement_.flaw_at + found.bytes);
    if (!is_printable(found.code) || found.code == 0xA0) {
      problem.help.push_back("delete it: it looks like a blank, or like nothing at all");
    }
  }

  void syntax(std::string_view reason, std::size_t at) {
    at = std::clamp(at, statement_.begin, statement_.end);
    reason_ = reason;
    const bool in_value = statement_.equals != Statement::npos && at > statement_.equals;
    if (says("nested value depth")) {
      error("the value is nested too deeply", at, at + 1);
    } else if (in_value) {
      explain_value(at);
    } else if (statement_.quote != Statement::npos) {
      open_quote();
    } else if (statement_.header) {
      explain_header(at);
    } else {
      explain_key(at);
    }
  }

 private:
  void explain_value(std::size_t at) {
    const std::size_t start = value();
    if (start == statement_.end || text_[start] == '#') {
      error("expected a value", statement_.equals, statement_.equals + 1)
          .help.push_back(fmt::format("write one after the `=`: `{} = \"...\"`", key()));
    } else if (!text_at_value_is_quoted()) {
      const std::size_t end = bare_end(start);
      const std::size_t second = text_.find('=', start);
      if (second < end && says("expected a comment or whitespace")) {
        trailing(at);
      } else {
        bare_value(start, end);
      }
    } else if (statement_.quote != Statement::npos && at >= statement_.quote) {
      open_quote();
    } else if (says("escape") || says("unicode scalar")) {
      escape(at);
    } else if (says("expected a comment or whitespace")) {
      trailing(at);
    } else if (statement_.bracket != Statement::npos && at_end(at)) {
      const bool list = text_[statement_.bracket] == '[';
      error(list ? "the list is not closed" : "the table is not closed", statement_.bracket,
            statement_.bracket + 1)
          .help.push_back(list ? "end it with `]`" : "end it with `}`");
    } else {
      explain_item(at);
    }
  }

  void explain_item(std::size_t at) {
    const bool table = says("inline table");
    if (table && (text_[at] == '\n' || text_[at] == '\r' || text_[at] == '#')) {
      error("a table in braces must be on one line", at - 1, at)
          .help.push_back("write it as a [table] of its own, one key a line");
    } else if (says("expected comma or closing")) {
      error(fmt::format("expected `,` or `{}`, found {}", table ? '}' : ']', found(at)), at,
            token_end(at))
          .help.push_back("put a comma between two items");
    } else if (says("comma")) {
      error(fmt::format("expected {}, found `{}`", table ? "a key" : "a value", text_[at]), at,
            at + 1);
    } else if (says("expected '='")) {
      error(fmt::format("expected `=` after the key, found {}", found(at)), at, token_end(at));
    } else if (table || says("parsing key") || says("'='")) {
      error(fmt::format("expected a key, found {}", found(at)), at, token_end(at));
    } else {
      std::size_t start = at;
      while (start > value() + 1 && is_word(text_[start - 1])) --start;
      bare_value(start, token_end(start));
    }
  }

  void explain_header(std::size_t at) {
    const bool list = text_.compare(statement_.begin, 2, "[[") == 0;
    if (says("expected a comment or whitespace")) {
      error(fmt::format("expected the end of the line after the table's name, found {}", found(at)),
            at, token_end(at));
    } else if (says("blank")) {
      error("a table needs a name", statement_.begin, statement_.end)
          .help.push_back("write one, such as `[backend]`");
    } else if (at_end(at) || says("expected ']'")) {
      Diagnostic& problem =
          error(fmt::format("expected `{}` after the table's name", list ? "]]" : "]"),
                at_end(at) ? statement_.begin : at,
                at_end(at) ? line_end(statement_.begin) : token_end(at));
      if (at_end(at)) problem.help.push_back("write it as in `[backend]`");
      if (!at_end(at))
        problem.notes.push_back("a table's name is one word, or words with dots between");
    } else {
      error(fmt::format("expected the name of a table, found {}", found(at)), at, token_end(at));
    }
  }

  void explain_key(std::size_t at) {
    if (at_end(at)) {
      error("expected `=` and a value after the key", statement_.begin, statement_.end)
          .help.push_back(fmt::format("write `{} = \"...\"`", key()));
    } else if (says("expected '='")) {
      Diagnostic& problem =
          error(fmt::format("expected `=` after the key, found {}", found(at)), at, token_end(at));
      if (text_[at] == ':') problem.help.push_back("write `=` in place of `:`");
    } else if (at == statement_.begin && text_[at] == '=') {
      error("expected a key before `=`", at, at + 1);
    } else if (at == statement_.begin) {
      Diagnostic& problem =
          error(fmt::format("expected a key or a [table], found {}", found(at)), at, token_end(at));
      if (text_[at] == '/' || text_[at] == ';') problem.help.push_back("start a comment with `#`");
    } else {
      error(fmt::format("expected a key, found {}", found(at)), at, token_end(at));
    }
  }

  void open_quote() {
    const std::size_t start = statement_.quote;
    const char quote = text_[start];
    const bool three =
        text_.compare(start, 3, std::string(3, quote)) == 0 && statement_.equals != Statement::npos;
    error("the text has no closing quote", start, line_end(start))
        .help.push_back(fmt::format("end it with `{}`", std::string(three ? 3 : 1, quote)));
  }

  void escape(std::size_t at) {
    std::size_t start = at;
    while (start > value() && text_[start] != '\\') --start;
    if (text_[start] != '\\') start = at;
    const char kind = start + 1 < text_.size() ? text_[start + 1] : ' ';
    std::size_t end =
        start + 1 + (start + 1 < text_.size() ? character_at(text_, start + 1).bytes : 0);
    while ((kind == 'u' || kind == 'U' || kind == 'x') && end < at && is_word(text_[end])) ++end;
    if (kind == 'u' || kind == 'U') end = std::max(end, std::min(at + 1, line_end(start)));
    while (end > start + 2 && (text_[end - 1] == '"' || text_[end - 1] == '\'')) --end;
    const std::string shown = in_ticks(text_.substr(start, end - start));
    Diagnostic& problem =
        error(kind == 'u' || kind == 'U' ? fmt::format("{} is not the escape of a character", shown)
                                         : fmt::format("{} is not an escape of TOML", shown),
              start, end);
    problem.help.push_back(
        "for a backslash itself, write `\\\\`, or put the text in single quotes");
  }

  void trailing(std::size_t at) {
    const std::size_t end = bare_end(at);
    Diagnostic& problem =
        error(fmt::format("expected the end of the line after the value, found {}",
                          in_ticks(text_.substr(at, end - at))),
              at, end);
    const char quote = text_[value()];
    if (text_[at] == ',' || text_[at] == ';') {
      problem.help.push_back(fmt::format("delete the `{}`", text_[at]));
    } else if (text_.substr(at, end - at).find('=') != std::string_view::npos) {
      problem.help.push_back("put each key on a line of its own");
    } else if (quote == '\'') {
      problem.help.push_back("put text that contains `'` in double quotes");
    } else if (quote == '"') {
      problem.help.push_back("inside the text, write a double quote as `\\\"`");
    }
  }

  /// "expected a value" for text that needs quotes.
  void bare_value(std::size_t start, std::size_t end) {
    std::string_view bare =
        text_.substr(start, bare_end(start) < end ? bare_end(start) - start : end - start);
    while (!bare.empty() && (kBlanks.find(bare.back()) != kBlanks.npos || bare.back() == ';' ||
                             bare.back() == ',')) {
      bare.remove_suffix(1);
    }
    Diagnostic& problem = error("expected a value", start, start + bare.size());
    const std::string_view curly = "\xE2\x80";
    if (bare.substr(0, 2) == curly || bare.find("\xE2\x80\x9D") != bare.npos) {
      problem.help.push_back("use straight quotes: `\"...\"`");
    } else if (bare.size() <= 60 && printable(bare) == bare &&
               bare.find_first_of("\"'\\[]{}") == bare.npos && !bare.empty()) {
      problem.help.push_back(fmt::format("put text in quotes: `\"{}\"`", bare));
    } else {
      problem.help.push_back("put text in quotes");
    }
  }

  Diagnostic& error(std::string message, std::size_t begin, std::size_t end) {
    return problems_.error(std::move(message), source_.span(begin, end));
  }

  bool says(std::string_view words) const { return reason_.find(words) != reason_.npos; }

  bool at_end(std::size_t at) const {
    return at >= statement_.end || text_[at] == '#' || text_[at] == '\n' || text_[at] == '\r' ||
           says("end-of-file");
  }

  /// Where the value starts; the end of the statement when there is none.
  std::size_t value() const {
    const std::size_t found = text_.find_first_not_of(" \t\r\n", statement_.equals + 1);
    if (found == text_.npos || found >= statement_.end) return statement_.end;
    // A value on the next line is no value: the line's end came first.
    return text_.substr(statement_.equals, found - statement_.equals).find('\n') == text_.npos
               ? found
               : statement_.end;
  }

  bool text_at_value_is_quoted() const {
    const std::size_t start = value();
    return start < statement_.end && std::string_view("\"'[{").find(text_[start]) != text_.npos;
  }

  std::string key() const {
    const std::size_t end = std::min(statement_.equals, statement_.end);
    std::string_view key = text_.substr(statement_.begin, end - statement_.begin);
    while (!key.empty() && kBlanks.find(key.back()) != kBlanks.npos) key.remove_suffix(1);
    return key.size() <= 40 ? printable(key) : "key";
  }

  static bool is_word(char c) {
    return std::string_view(" \t\r\n,[]{}#\"'=").find(c) == std::string_view::npos;
  }

  std::size_t line_end(std::size_t at) const {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    return end > at && text_[end - 1] == '\r' ? end - 1 : end;
  }

  /// The end of the bare text that starts at `at`: before a comment, blanks at its end left out.
  std::size_t bare_end(std::size_t at) const {
    std::size_t end = line_end(at);
    for (std::size_t i = at + 1; i < end; ++i) {
      if (text_[i] == '#' && kBlanks.find(text_[i - 1]) != kBlanks.npos) end = i;
    }
    while (end > at + 1 && kBlanks.find(text_[end - 1]) != kBlanks.npos) --end;
    return end;
  }

  std::size_t token_end(std::size_t at) const {
    std::size_t end = at;
    while (end < statement_.end && is_word(text_[end])) ++end;
    return std::max(end, at + 1);
  }

  std::string name(const Character& c) const {
    return is_printable(c.code) && c.code != 0xA0
               ? in_ticks(text_.substr(statement_.flaw_at, c.bytes))
               : "character " + code_name(c.code);
  }

  std::string found(std::size_t at) const {
    if (at_end(at)) return "the end of the line";
    return in_ticks(text_.substr(at, token_end(at) - at));
  }

  const Source& source_;
  std::string_view text_;
  const Statement& statement_;
  Diagnostics& problems_;
  std::string_view reason_;
};

}  // namespace

void explain_flaw(const Source& source, const Statement& statement, Diagnostics& problems) {
  Explainer(source, statement, problems).flaw();
}

void explain_syntax(const Source& source, const Statement& statement, std::string_view reason,
                    std::size_t at, Diagnostics& problems) {
  Explainer(source, statement, problems).syntax(reason, at);
}

}  // namespace backendgen
