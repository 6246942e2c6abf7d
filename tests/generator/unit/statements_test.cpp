// SPDX-License-Identifier: Apache-2.0
#include "description/statements.h"

#include <string>

#include "catch.h"

using namespace backendgen;

namespace {

/// The statements of a text, each on one line, with "|" between.
std::string split(const std::string& text) {
  std::string result;
  for (const Statement& statement : split_statements(text)) {
    std::string one = text.substr(statement.begin, statement.end - statement.begin);
    for (char& c : one) c = c == '\n' ? '~' : c;
    result += (result.empty() ? "" : "|") + one;
  }
  return result;
}

Statement only(const std::string& text) {
  const auto statements = split_statements(text);
  REQUIRE(statements.size() == 1);
  return statements.front();
}

}  // namespace

TEST_CASE("a text is split into its statements") {
  CHECK(split("").empty());
  CHECK(split("\n \t\n# comment\n\r\n").empty());
  CHECK(split("[a]\nb = 1\n\n  c = 2") == "[a]|b = 1|c = 2");
  CHECK(split("a = 1 # one\r\nb = 2\r\n") == "a = 1 # one|b = 2");
  CHECK(split("a = [\n  1, # one\n  [2],\n]\nb = 2") == "a = [~  1, # one~  [2],~]|b = 2");
  CHECK(split("a = \"\"\"x\n[b]\n\"\"\"\nc = 1") == "a = \"\"\"x~[b]~\"\"\"|c = 1");
  CHECK(split("a = '''x'\n'''''\nc = 1") == "a = '''x'~'''''|c = 1");
  CHECK(split("a = \"x\\\"]\"\nc = ']'") == "a = \"x\\\"]\"|c = ']'");
  CHECK(split("a = { b = 1 }\nc = 1") == "a = { b = 1 }|c = 1");
}

TEST_CASE("an unclosed bracket ends where a statement must begin") {
  CHECK(split("a = [\n  \"x\",\n\n[b]\nc = 1") == "a = [~  \"x\",~|[b]|c = 1");
  CHECK(split("a = [\n  \"x\"\nb = 1") == "a = [~  \"x\"|b = 1");
  CHECK(split("a = [\n  [1],\n  [2]\n]") == "a = [~  [1],~  [2]~]");
  CHECK(only("a = [ {").bracket == 4);
  CHECK(only("a = [1]").bracket == Statement::npos);
}

TEST_CASE("an unclosed quote ends with its line") {
  CHECK(split("a = \"x\nb = 1") == "a = \"x|b = 1");
  CHECK(only("a = 'x").quote == 4);
  CHECK(only("a = \"\"\"x\n\n").quote == 4);
  CHECK(only("a = \"x\\").quote == 4);
  CHECK(only("a = 'x'").quote == Statement::npos);
}

TEST_CASE("the parts of a statement") {
  CHECK(only("a.'=' = 1").equals == 6);
  CHECK(only("[a]").header);
  CHECK(only("[a]").equals == Statement::npos);
  CHECK_FALSE(only("a = [1]").header);
}

TEST_CASE("flaws that the parser must not see") {
  CHECK(only("a = \"x\x01\"").flaw == Flaw::kControl);
  CHECK(only("a = \"x\x01\"").flaw_at == 6);
  CHECK(only("# \x7F").flaw == Flaw::kControl);
  CHECK(only("a = 1\rb = 2").flaw == Flaw::kControl);
  CHECK(only("a = caf\xC3\xA9").flaw == Flaw::kCharacter);
  CHECK(only("a = 'caf\xC3\xA9' # \xC3\xA9").flaw == Flaw::kNone);
  CHECK(only("a = \"\"\"x\\\n \xC3\xA9\"\"\"").flaw == Flaw::kBackslash);
  CHECK(only("a = \"\"\"x\\\n y\xC3\xA9\"\"\"").flaw == Flaw::kNone);
  CHECK(only("a = '\\\xC3\xA9'").flaw == Flaw::kNone);
  CHECK(only("\"\"\"a\"\"\" = 1").flaw == Flaw::kLongKey);
  CHECK(only("['\'\'a']").flaw == Flaw::kLongKey);
  CHECK(only("\"\" = \"\"\"a\"\"\"").flaw == Flaw::kNone);
  CHECK(only("a = [1, }").flaw == Flaw::kBrace);
  CHECK(only("a = 1979-05-27TT07:32").flaw == Flaw::kTime);
  CHECK(only("a = 1979-05-27t+7").flaw == Flaw::kTime);
  CHECK(only("a = 1979-05-27T07:32").flaw == Flaw::kNone);
  CHECK(only("a1t = true").flaw == Flaw::kNone);
  CHECK(only("a = [{ }]").flaw == Flaw::kNone);
  CHECK(only("[[[a]]]").flaw == Flaw::kHead);
  CHECK(only("[ ,]").flaw_at == 2);
  CHECK(only("[ ").flaw == Flaw::kNone);
  CHECK(only("[[ 'a']]").flaw == Flaw::kNone);
  std::string dots = "a";
  for (int i = 0; i < 64; ++i) dots += ".a";
  CHECK(only(dots + " = 1").flaw == Flaw::kNone);
  CHECK(only(dots + ".a = 1").flaw == Flaw::kDots);
}
