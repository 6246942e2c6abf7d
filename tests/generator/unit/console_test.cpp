// SPDX-License-Identifier: Apache-2.0
#include "base/console.h"

#include <sstream>

#include "catch.h"

using namespace backendgen;

namespace {

struct Screen {
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err, Colour::kNever};
};

}  // namespace

TEST_CASE("data goes to stdout, everything else to stderr") {
  Screen screen;
  screen.console.data("raw\x1B");
  screen.console.status("Created", "kite/\x1B");
  screen.console.line("two\nlines\x1B");
  CHECK(screen.out.str() == "raw\x1B");
  CHECK(screen.err.str() == "     Created kite/\\x1b\ntwo\nlines\\x1b\n");
}

TEST_CASE("problems come in file order and are counted") {
  Diagnostics problems;
  problems.error("nowhere");
  problems.error("second", {2, 1, 1});
  problems.warning("first", {1, 1, 1});
  Screen screen;
  screen.console.report(problems, Source("backend.toml", "a\nb\n"));
  CHECK(screen.err.str() ==
        "warning: first\n --> backend.toml:1:1\n  |\n1 | a\n  | ^\n"
        "\n"
        "error: second\n --> backend.toml:2:1\n  |\n2 | b\n  | ^\n"
        "\n"
        "error: nowhere\n"
        "\n"
        "error: backend.toml has 2 problems\n");
}

TEST_CASE("one problem is not counted, no problem says nothing") {
  Screen screen;
  Diagnostics problems;
  screen.console.report(problems, Source("a", ""));
  CHECK(screen.err.str().empty());
  problems.error("alone");
  screen.console.report(problems, Source("a", ""));
  CHECK(screen.err.str() == "error: alone\n");
}

TEST_CASE("a flood of problems is cut") {
  Diagnostics problems;
  for (int i = 0; i < 300; ++i) problems.error("x");
  Screen screen;
  screen.console.report(problems, Source("a", ""));
  const std::string all = screen.err.str();
  CHECK(all.find("error: a has 300 problems\nnote: the first 100 are shown\n") != all.npos);
  CHECK(all.size() < 2000);
}

TEST_CASE("what the user typed is quoted on one line and cut") {
  CHECK(in_ticks("kite") == "`kite`");
  CHECK(in_ticks("a\nb") == "`a\\nb`");
  CHECK(in_ticks(std::string(61, 'x')) == "`" + std::string(60, 'x') + "...`");
  CHECK(in_ticks(std::string(60, 'x')) == "`" + std::string(60, 'x') + "`");
}

TEST_CASE("data that nobody takes is remembered", "[console]") {
  Screen screen;
  screen.console.data("");
  screen.console.data("some");
  CHECK(screen.console.failure().empty());
  screen.out.setstate(std::ios::badbit);
  screen.console.data("");
  CHECK(screen.console.failure().empty());
  screen.console.data("more");
  CHECK(screen.console.failure() == "Input/output error");
  screen.console.status("Listed", "what nobody got");
  CHECK(screen.err.str().empty());
}
