// SPDX-License-Identifier: Apache-2.0
#include "description/value_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/text.h"

namespace backendgen {
namespace {

const char* kind_name(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kText:
      return "a string";
    case Value::Kind::kInteger:
      return "an integer";
    case Value::Kind::kFloat:
      return "a float";
    case Value::Kind::kBoolean:
      return "a boolean";
    case Value::Kind::kDate:
      return "a date or time";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kTable:
      break;
  }
  return "a table";
}

}  // namespace

void suggest_known(Diagnostic& problem, std::string_view word,
                   const std::vector<std::string>& known, const char* what) {
  if (const auto near = nearest(word, known)) {
    problem.help.push_back(fmt::format("did you mean `{}`?", *near));
  } else if (known.size() == 1) {
    problem.notes.push_back(fmt::format("the only key is `{}`", known.front()));
  } else {
    problem.notes.push_back(fmt::format("the {} are {}", what, enumerate(known)));
  }
}

const Member* find(const Value* table, std::string_view key) {
  if (table == nullptr) return nullptr;
  const auto at = std::find_if(table->members.begin(), table->members.end(),
                               [&](const Member& member) { return member.key == key; });
  return at == table->members.end() ? nullptr : &*at;
}

Span place(const Member& member) {
  const bool headed = member.value.kind == Value::Kind::kTable && member.value.span.known() &&
                      member.value.span < member.span;
  return headed ? member.value.span : member.span;
}

Diagnostic& ValueReader::wrong_type(const Member& member, const std::string& expected) {
  const Span span = member.value.span.known() ? member.value.span : member.span;
  return problems_.error(
      fmt::format("{} is {}, expected {}", in_ticks(member.key), kind_name(member.value), expected),
      span);
}

Diagnostic& ValueReader::wrong_value(const Member& member, const std::string& message) {
  return problems_.error(message, member.value.span.known() ? member.value.span : member.span);
}

void ValueReader::refuse_unknown_keys(const Value& table, const std::string& where,
                                      const std::vector<std::string>& keys) {
  for (const Member& member : table.members) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    Diagnostic& problem = problems_.error(
        fmt::format("unknown key {} in {}", in_ticks(member.key), where), place(member));
    suggest_known(problem, member.key, keys, "keys");
  }
}

void ValueReader::cannot_be(const std::string& text, const Span& span, const char* what,
                            const Complaint& complaint) {
  Diagnostic& problem = problems_.error(
      text.empty() ? fmt::format("an empty string cannot be {}", what)
                   : fmt::format("{} cannot be {}: {}", in_ticks(text), what, complaint.message),
      span);
  if (!complaint.help.empty()) problem.help.push_back(complaint.help);
}

Text ValueReader::judged(const Value& value, const Rule& rule) {
  if (const auto complaint = rule.judge(value.text)) {
    cannot_be(value.text, value.span, rule.what, *complaint);
    return {};
  }
  return {value.text, value.span};
}

Text ValueReader::text(const Member& member, const Rule& rule) {
  if (member.value.kind == Value::Kind::kText) return judged(member.value, rule);
  wrong_type(member, "a string");
  return {};
}

std::vector<Text> ValueReader::texts(const Member& member, const Rule& rule) {
  std::vector<Text> result;
  if (member.value.kind != Value::Kind::kList) {
    Diagnostic& problem = wrong_type(member, "a list of strings");
    if (member.value.kind == Value::Kind::kText) problem.help.push_back("put it in brackets");
    return result;
  }
  for (const Value& item : member.value.items) {
    if (item.kind != Value::Kind::kText) {
      problems_.error(fmt::format("an item of {} is {}, expected a string", in_ticks(member.key),
                                  kind_name(item)),
                      item.span);
      continue;
    }
    Text read = judged(item, rule);
    if (!read.span.known()) continue;
    const auto first = std::find_if(result.begin(), result.end(),
                                    [&](const Text& other) { return other.value == read.value; });
    if (first == result.end()) {
      result.push_back(std::move(read));
    } else {
      problems_.error(fmt::format("{} is listed twice", in_ticks(read.value)), read.span).earlier =
          Label{first->span, "first listed here"};
    }
  }
  return result;
}

bool ValueReader::boolean(const Member& member, bool otherwise) {
  if (member.value.kind == Value::Kind::kBoolean) return member.value.truth;
  Diagnostic& problem = wrong_type(member, "`true` or `false`");
  const std::string& text = member.value.text;
  if (member.value.kind == Value::Kind::kText && (text == "true" || text == "false")) {
    problem.help.push_back(fmt::format("write {}, without quotes", in_ticks(text)));
  }
  return otherwise;
}

std::size_t ValueReader::choice(const Member& member, const char* what,
                                std::span<const std::string_view> words, std::size_t otherwise) {
  const std::string expected = fmt::format("`\"{}\"` or `\"{}\"`", words.front(), words.back());
  if (member.value.kind != Value::Kind::kText) {
    wrong_type(member, expected);
    return otherwise;
  }
  const std::string& text = member.value.text;
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  Diagnostic& problem =
      problems_.error(fmt::format("unknown {} {}", what, in_ticks(text)), member.value.span);
  if (const auto near = nearest(text, {words.begin(), words.end()})) {
    problem.help.push_back(fmt::format("did you mean `{}`?", *near));
  }
  problem.notes.push_back(fmt::format("{} is {}", in_ticks(member.key), expected));
  return otherwise;
}

}  // namespace backendgen
