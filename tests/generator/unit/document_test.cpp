// SPDX-License-Identifier: Apache-2.0
#include "description/document.h"

#include <string>

#include <fmt/format.h>

#include "catch.h"

using namespace backendgen;

namespace {

/// The problems of a text as "line:column+length message", one a line.
std::string problems_of(const std::string& text) {
  Diagnostics problems;
  parse_document(Source("a", text), problems);
  std::string result;
  for (const Diagnostic& problem : problems.sorted()) {
    result += fmt::format("{}:{}+{} {}\n", problem.span.line, problem.span.column,
                          problem.span.length, problem.message);
  }
  return result;
}

Document read(const std::string& text) {
  Diagnostics problems;
  auto document = parse_document(Source("a", text), problems);
  REQUIRE(document);
  return *document;
}

}  // namespace

TEST_CASE("values know their places") {
  const Document document =
      read("# c\n[b]\n\"k.l\"   = 'x' # c\nd = [ \"\xC3\xA9\", 2 ]\n[a.c]\nz = 1.5\ny = true\n");
  REQUIRE(document.root.members.size() == 2);
  const Member& b = document.root.members[0];
  CHECK(b.key == "b");
  CHECK(b.span == Span{2, 2, 1});
  CHECK(b.value.span == Span{2, 1, 3});
  REQUIRE(b.value.members.size() == 2);
  CHECK(b.value.members[0].key == "k.l");
  CHECK(b.value.members[0].span == Span{3, 1, 5});
  CHECK(b.value.members[0].value.text == "x");
  CHECK(b.value.members[0].value.span == Span{3, 11, 3});
  const Value& list = b.value.members[1].value;
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[0].span == Span{4, 7, 4});
  CHECK(list.items[1].span == Span{4, 13, 1});
  CHECK(list.items[1].kind == Value::Kind::kInteger);
  const Value& c = document.root.members[1].value.members[0].value;
  CHECK(c.span == Span{5, 1, 5});
  CHECK(c.members[0].value.kind == Value::Kind::kFloat);
  CHECK(c.members[1].value.kind == Value::Kind::kBoolean);
}

TEST_CASE("every syntax error of a text is reported, and the rest is read") {
  const std::string text = "a = x\nb = \"good\"\nc d = 1\n[e\nf = 1\n[g]\nh = 'ok'\n";
  CHECK(problems_of(text) ==
        "1:5+1 expected a value\n"
        "3:3+1 expected `=` after the key, found `d`\n"
        "4:1+2 expected `]` after the table's name\n");
  Diagnostics problems;
  const auto document = parse_document(Source("a", text), problems);
  REQUIRE(document);
  REQUIRE(document->root.members.size() == 2);
  CHECK(document->root.members[0].value.text == "good");
  CHECK(document->root.members[1].key == "g");
  CHECK(document->may_have_had("a"));
  CHECK(document->may_have_had("anything"));  // [e was a table
}

TEST_CASE("syntax errors in our words") {
  const auto is = [](const char* text, const char* problem) {
    INFO(text);
    CHECK(problems_of(text) == std::string(problem) + "\n");
  };
  is("a = kite # x", "1:5+4 expected a value");
  is("a = foo bar", "1:5+7 expected a value");
  is("a =", "1:3+1 expected a value");
  is("a = # x", "1:3+1 expected a value");
  is("a =\n", "1:3+1 expected a value");
  is("a = 0.1.0", "1:5+5 expected a value");
  is("a = 01", "1:5+2 expected a value");
  is("a = 1979-13-01", "1:5+10 expected a value");
  is("a = 99999999999999999999", "1:5+20 expected a value");
  is("a = tru", "1:5+3 expected a value");
  is("a = .5", "1:5+2 expected a value");
  is("a = +", "1:5+1 expected a value");
  is("a = [x, 1]", "1:6+1 expected a value");
  is("a", "1:1+1 expected `=` and a value after the key");
  is("a\n", "1:1+1 expected `=` and a value after the key");
  is("a: 1", "1:2+1 expected `=` after the key, found `:`");
  is("= 1", "1:1+1 expected a key before `=`");
  is("a. = 1", "1:4+1 expected a key, found `=`");
  is("!a = 1", "1:1+2 expected a key or a [table], found `!a`");
  is("a = \"x", "1:5+2 the text has no closing quote");
  is("a = 'x", "1:5+2 the text has no closing quote");
  is("a = '''x\n\n", "1:5+4 the text has no closing quote");
  is("\"a = 1", "1:1+6 the text has no closing quote");
  is("[\"a]", "1:2+3 the text has no closing quote");
  is("a = [\"x]", "1:6+3 the text has no closing quote");
  is("a = \"\\q\"", "1:6+2 `\\q` is not an escape of TOML");
  is("a = \"\\x41\"", "1:6+2 `\\x` is not an escape of TOML");
  is("a = \"\\u12\"", "1:6+4 `\\u12` is not the escape of a character");
  is("a = \"\\uD800\"", "1:6+6 `\\uD800` is not the escape of a character");
  is("a = \"x\" y", "1:9+1 expected the end of the line after the value, found `y`");
  is("a = \"x\",", "1:8+1 expected the end of the line after the value, found `,`");
  is("a = 1 b = 2", "1:7+5 expected the end of the line after the value, found `b = 2`");
  is("a = [1, 2", "1:5+1 the list is not closed");
  is("a = [1 2]", "1:8+1 expected `,` or `]`, found `2`");
  is("a = [1, }", "1:9+1 expected `,` or `]`, found `}`");
  is("a = [1,,2]", "1:8+1 expected a value, found `,`");
  is("a = {b = 1", "1:5+1 the table is not closed");
  is("a = {b = 1 c = 2}", "1:12+1 expected `,` or `}`, found `c`");
  is("a = {,}", "1:6+1 expected a key, found `,`");
  is("a = {b = 1,}", "1:12+1 expected a key, found `}`");
  is("a = {\nb = 1}", "1:5+1 a table in braces must be on one line");
  is("[]", "1:1+2 a table needs a name");
  is("[a", "1:1+2 expected `]` after the table's name");
  is("[[a]", "1:1+4 expected `]]` after the table's name");
  is("[a b]", "1:4+1 expected `]` after the table's name");
  is("[[[a]]]", "1:3+1 expected the name of a table, found `[`");
  is("[ # a]", "1:1+6 expected `]` after the table's name");
  is("[a.]", "1:4+1 expected the name of a table, found `]`");
  is("[a]]", "1:4+1 expected the end of the line after the table's name, found `]`");
  is("[a] b = 1", "1:5+1 expected the end of the line after the table's name, found `b`");
  is("a = \x01", "1:5+1 the control character U+0001 is not allowed here");
  is("a = \xE2\x80\x9Cx\xE2\x80\x9D", "1:5+7 expected a value");
  is("\xC3\xA9 = 1", "1:1+2 unexpected `\xC3\xA9` outside quotes");
  is("a = \"\xFF\"", "1:6+1 the byte 0xFF is not UTF-8");
}

TEST_CASE("keys that are given twice") {
  CHECK(problems_of("a = 1\na = 2\n") == "2:1+1 `a` is given twice\n");
  CHECK(problems_of("[a]\nb = 1\nb = 2\n") == "3:1+1 `b` is given twice\n");
  CHECK(problems_of("[a] # x\n[b]\n[a] # y\nc = 1\n") == "3:1+3 `[a]` is given twice\n");
  CHECK(problems_of("a = 1\n[a]\n") == "2:1+3 `[a]` is given twice\n");
  CHECK(problems_of("a = 1\na.b = 2\n") == "2:1+3 `a.b` is given twice\n");
  CHECK(problems_of("a = {b = 1, b = 2}\n") == "1:1+18 a key is given twice in this table\n");
  CHECK(problems_of("[operators.kernels]\n\"add.out\" = 'a'\n\"add.out\" = 'b'\n") ==
        "3:1+9 operator `add.out` is listed twice\n");
  CHECK(problems_of("a = []\n[[a]]\n") == "2:1+5 `[[a]]` is given twice\n");
}

TEST_CASE("a repetition shows the first place") {
  Diagnostics problems;
  parse_document(Source("a", "[a]\nb = 1\n\nb = 2\n"), problems);
  const auto found = problems.sorted();
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].earlier);
  CHECK(found[0].earlier->span == Span{2, 1, 1});
  CHECK(found[0].earlier->text == "first given here");
}

TEST_CASE("hostile depth is refused without a crash") {
  std::string dots;
  for (int i = 0; i < 100'000; ++i) dots += "a.";
  CHECK(problems_of(dots + "a = 1").find("too many dots in one line") != std::string::npos);
  CHECK(problems_of("a = " + std::string(100'000, '[')).find("nested too deeply") !=
        std::string::npos);
  std::string tables = "a = ";
  for (int i = 0; i < 1000; ++i) tables += "{a = ";
  CHECK(problems_of(tables).find("nested too deeply") != std::string::npos);
}

TEST_CASE("a text of nothing but errors comes to an end") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "= x\n";
  Diagnostics problems;
  CHECK_FALSE(parse_document(Source("a", text), problems));
  CHECK(problems.error_count() == 30);
}
