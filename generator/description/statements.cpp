// SPDX-License-Identifier: Apache-2.0
#include "description/statements.h"

#include "base/ascii.h"

namespace backendgen {
namespace {

constexpr std::size_t kMostDots = 64;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_key_character(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<Statement> split() {
    while (at_ < text_.size()) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      if (text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n") {
        at_ = text_.find('\n', at_) + 1;
        continue;
      }
      read_statement();
    }
    return std::move(result_);
  }

 private:
  void read_statement() {
    now_ = Statement{};
    now_.begin = at_;
    now_.header = text_[at_] == '[';
    brackets_.clear();
    dots_ = 0;
    if (now_.header) check_head();
    const bool comment = text_[at_] == '#';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (brackets_.empty() || starts_statement(at_ + 1)) break;
        ++at_;
      } else if (c == '#') {
        skip_comment();
      } else if (c == '"' || c == '\'') {
        read_quoted(c);
      } else {
        read_plain(c);
      }
    }
    if (!brackets_.empty()) now_.bracket = brackets_.front();
    now_.end = at_;
    if (now_.end > now_.begin && text_[now_.end - 1] == '\r') --now_.end;
    if (at_ < text_.size()) ++at_;
    if (!comment || now_.flaw != Flaw::kNone) result_.push_back(now_);
  }

  void check_head() {
    std::size_t at = at_ + 1;
    if (text_.substr(at, 1) == "[") ++at;
    while (at < text_.size() && is_blank(text_[at])) ++at;
    if (at == text_.size() || is_key_character(text_[at])) return;
    if (std::string_view("\"']").find(text_[at]) != std::string_view::npos) return;
    now_.flaw = Flaw::kHead;
    now_.flaw_at = at;
  }

  void read_plain(char c) {
    check(c);
    if (static_cast<unsigned char>(c) >= 0x80) flaw(Flaw::kCharacter);
    const bool in_value = now_.equals != Statement::npos;
    if (c == '.' && ++dots_ > kMostDots) flaw(Flaw::kDots);
    if (in_value && (c == 'T' || c == 't') && is_digit_at(at_ - 1) && !is_digit_at(at_ + 1)) {
      flaw(Flaw::kTime);
    }
    if (c == '=' && !in_value && !now_.header) now_.equals = at_;
    if (in_value && (c == '[' || c == '{')) brackets_.push_back(at_);
    if (in_value && (c == ']' || c == '}') && !brackets_.empty()) {
      if (c == '}' && text_[brackets_.back()] == '[') flaw(Flaw::kBrace);
      brackets_.pop_back();
    }
    ++at_;
  }

  bool is_digit_at(std::size_t at) const { return at < text_.size() && is_digit(text_[at]); }

  void skip_comment() {
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) check(text_[at_]);
  }

  void read_quoted(char quote) {
    const std::size_t start = at_;
    const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
    const bool three_quotes = text_.substr(at_, 3) == three;
    const bool long_text = now_.equals != Statement::npos && three_quotes;
    if (three_quotes && !long_text) flaw(Flaw::kLongKey);
    at_ += long_text ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n' && !long_text) break;
      if (c != '\n') check(c);
      if (c == '\\' && quote == '"') check_escape();
      if (c == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        ++at_;
        check(text_[at_]);
      } else if (long_text ? text_.substr(at_, 3) == three : c == quote) {
        at_ += long_text ? 3 : 1;
        // A long text may end with up to two quotes of its own.
        for (int more = 0; long_text && more < 2 && at_ < text_.size() && text_[at_] == quote;) {
          ++more;
          ++at_;
        }
        return;
      }
    }
    if (now_.quote == Statement::npos) now_.quote = start;
  }

  void check_escape() {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    const bool beyond = next != text_.npos && static_cast<unsigned char>(text_[next]) >= 0x80;
    if (beyond) flaw(Flaw::kBackslash);
  }

  /// Notes a control character at `at_`. A carriage return is one unless it ends the line.
  void check(char c) {
    const auto code = static_cast<unsigned char>(c);
    if (code == '\r' && text_.substr(at_, 2) == "\r\n") return;
    if ((code < 0x20 && c != '\t') || code == 0x7F) flaw(Flaw::kControl);
  }

  void flaw(Flaw found) {
    if (now_.flaw != Flaw::kNone) return;
    now_.flaw = found;
    now_.flaw_at = at_;
  }

  /// Whether the line at `at` can only be a new statement, so that brackets still open were
  /// forgotten: a `[table]`, or, in a list, `key =`.
  bool starts_statement(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) ++at;
    const bool header = at < text_.size() && text_[at] == '[';
    if (header) ++at;
    const std::size_t start = at;
    while (at < text_.size() && (is_key_character(text_[at]) || text_[at] == '.')) ++at;
    if (at == start || is_digit(text_[start])) return false;
    if (header) return at < text_.size() && text_[at] == ']';
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return text_[brackets_.back()] == '[' && at < text_.size() && text_[at] == '=';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Statement now_;
  std::vector<std::size_t> brackets_;
  std::size_t dots_ = 0;
  std::vector<Statement> result_;
};

}  // namespace

std::vector<Statement> split_statements(std::string_view text) {
  return Splitter(text).split();
}

}  // namespace backendgen
