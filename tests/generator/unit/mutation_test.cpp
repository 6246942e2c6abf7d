// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/render.h"
#include "base/utf8.h"
#include "catch.h"
#include "description/read.h"

using namespace backendgen;

namespace {

const std::string kSeed = R"(# A description with every key.
[backend]
name = "foo"
package = 'foo_frameworks'
version = "0.1.0"
summary = """A \u00fc "thing" """
runtime = "foo::Runtime"
header = "a/b.h"

[torch]
requires = ">=2.5,<3.0"
[autoload]
layout = "submodule"
imports = [ "foo_frameworks.a", # one
  'foo_frameworks.b' ]
[operators]
fallback = "cpu"
kernels = { "add.out" = "foo::add", relu = "foo::relu" }
[amp]
dtypes = ["float16"]
[entry-points."torchrun.logs"]
a = "b:c"
[entry-points.x.y]
d = '''e:f'''
)";

const std::vector<std::string> kPieces = {"\"",
                                          "'",
                                          "\"\"\"",
                                          "'''",
                                          "\\",
                                          "\n",
                                          "\r",
                                          "\r\n",
                                          "\t",
                                          "[",
                                          "]",
                                          "[[",
                                          "]]",
                                          "{",
                                          "}",
                                          ",",
                                          "=",
                                          ".",
                                          "#",
                                          "\\u00",
                                          "\\U0010FFFF",
                                          "\\ud800",
                                          "0x",
                                          "1e",
                                          "nan",
                                          "inf",
                                          "-",
                                          "+",
                                          "1979-05-27T07:32",
                                          "true",
                                          "[backend]",
                                          "[operators.kernels]",
                                          "name = 1",
                                          "\xC3\xA9",
                                          "\xC2\xA0",
                                          "\xE2\x80\xA8",
                                          "\xC2\x85",
                                          "\xE3\x80\x80",
                                          "\xEF\xBB\xBF",
                                          "\xF0\x9F\x90\x8D",
                                          "\xFF",
                                          "\xC3",
                                          std::string("\0", 1),
                                          "\x1B",
                                          "\x7F",
                                          "a.a.a.a.",
                                          "99999999999999999999",
                                          "{{x}}",
                                          "=\n",
                                          "[\n",
                                          "{\n",
                                          "x = [",
                                          "''''''"};

std::string mutated(std::mt19937& random, std::string text) {
  const auto below = [&random](std::size_t count) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(count, 1));
  };
  for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(below(20), text.size() - at);
    switch (below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.replace(at, length, kPieces[below(kPieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random());
    }
  }
  return text;
}

}  // namespace

TEST_CASE("whatever a description holds, the problems can be shown") {
  std::mt19937 random(20260101);
  std::size_t good = 0;
  for (int round = 0; round < 3000; ++round) {
    const Source source("backend.toml", mutated(random, kSeed));
    Diagnostics problems;
    const auto description = read_description(source, problems);
    good += description.has_value();
    REQUIRE(description.has_value() == !problems.has_errors());
    for (const Diagnostic& problem : problems.sorted()) {
      const std::string shown = render(problem, &source, Colour::kNever);
      INFO(printable_lines(source.text()));
      REQUIRE(find_invalid_utf8(shown) == shown.npos);
      REQUIRE(printable_lines(shown) == shown);
      REQUIRE(problem.message.find("parsing") == std::string::npos);
      if (!problem.span.known()) continue;
      REQUIRE(problem.span.column <= source.line(problem.span.line).size() + 2);
      REQUIRE(problem.span.length <= source.line(problem.span.line).size() + 1);
    }
  }
  CHECK(good > 0);
}
