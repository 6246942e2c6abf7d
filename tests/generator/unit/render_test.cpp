// SPDX-License-Identifier: Apache-2.0
#include "base/render.h"

#include <string>

#include "catch.h"

using namespace backendgen;

namespace {

std::string draw(const std::string& text, Span span, Colour colour = Colour::kNever) {
  const Source source("backend.toml", text);
  Diagnostic problem;
  problem.message = "wrong";
  problem.span = span;
  return render(problem, &source, colour);
}

}  // namespace

TEST_CASE("a problem with a place shows its line") {
  CHECK(draw("a = 1\nname = kite\n", {2, 8, 4}) ==
        "error: wrong\n"
        " --> backend.toml:2:8\n"
        "  |\n"
        "2 | name = kite\n"
        "  |        ^^^^\n");
}

TEST_CASE("a problem without a place, with help and notes") {
  Diagnostic problem;
  problem.severity = Severity::kWarning;
  problem.message = "odd `a\x1B`";
  problem.help = {"one", "two\nlines"};
  problem.notes = {"fact\r"};
  CHECK(render(problem, nullptr, Colour::kNever) ==
        "warning: odd `a\\x1b`\nhelp: one\nhelp: two\nlines\nnote: fact\\r\n");
}

TEST_CASE("the earlier place stands above, with dots between") {
  const Source source("backend.toml", "a = 1\n\n\n\n\n\n\n\nb = 2\na = 3\n");
  Diagnostic problem;
  problem.message = "`a` is given twice";
  problem.span = {10, 1, 1};
  problem.earlier = Label{{1, 1, 1}, "first given here"};
  CHECK(render(problem, &source, Colour::kNever) ==
        "error: `a` is given twice\n"
        "  --> backend.toml:10:1\n"
        "   |\n"
        " 1 | a = 1\n"
        "   | - first given here\n"
        "...\n"
        "10 | a = 3\n"
        "   | ^\n");
}

TEST_CASE("two places in a line share it") {
  const Source source("backend.toml", "a = [1, 1]\n");
  Diagnostic problem;
  problem.message = "twice";
  problem.span = {1, 9, 1};
  problem.earlier = Label{{1, 6, 1}, "first"};
  CHECK(render(problem, &source, Colour::kNever) ==
        "error: twice\n --> backend.toml:1:9\n  |\n"
        "1 | a = [1, 1]\n"
        "  |      - first\n"
        "  |         ^\n");
}

TEST_CASE("carets count columns of the terminal, not bytes") {
  CHECK(draw("\ta = \"x\"", {1, 6, 3}) ==
        "error: wrong\n --> backend.toml:1:6\n  |\n1 |     a = \"x\"\n  |         ^^^\n");
  CHECK(draw("\xE9\xA2\xA8 = \xC3\xA9", {1, 7, 2}) ==
        "error: wrong\n --> backend.toml:1:7\n  |\n1 | \xE9\xA2\xA8 = \xC3\xA9\n  |      ^\n");
  CHECK(draw("a\x1B"
             "b",
             {1, 2, 1}) == "error: wrong\n --> backend.toml:1:2\n  |\n1 | a\\x1bb\n  |  ^^^^\n");
}

TEST_CASE("a place past the end of its line has one caret") {
  CHECK(draw("ab", {1, 3, 1}) == "error: wrong\n --> backend.toml:1:3\n  |\n1 | ab\n  |   ^\n");
  CHECK(draw("", {1, 1, 1}) == "error: wrong\n --> backend.toml:1:1\n  |\n1 |\n  | ^\n");
  CHECK(draw("a", {9, 4, 2}) == "error: wrong\n --> backend.toml:9:4\n  |\n9 |\n  | ^\n");
}

TEST_CASE("of a long line the part around the span is shown") {
  const std::string line = std::string(500, 'a') + "HERE" + std::string(1'000'000, 'b');
  CHECK(draw(line, {1, 501, 4}) == "error: wrong\n --> backend.toml:1:501\n  |\n1 | ..." +
                                       std::string(20, 'a') + "HERE" + std::string(70, 'b') +
                                       "...\n  | " + std::string(23, ' ') + "^^^^\n");
  const std::string all = draw(line, {1, 1, line.size()});
  CHECK(all == "error: wrong\n --> backend.toml:1:1\n  |\n1 | " + std::string(94, 'a') +
                   "...\n  | " + std::string(94, '^') + "\n");
}

TEST_CASE("colours surround words and never change them") {
  std::string coloured = draw("a = 1", {1, 1, 1}, Colour::kAlways);
  CHECK(coloured.find("\x1B[1;31merror\x1B[0m") == 0);
  for (std::size_t at; (at = coloured.find('\x1B')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  CHECK(coloured == draw("a = 1", {1, 1, 1}));
}
