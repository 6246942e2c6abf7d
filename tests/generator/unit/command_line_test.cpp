// SPDX-License-Identifier: Apache-2.0
#include "base/command_line.h"

#include <sstream>

#include "catch.h"

using namespace backendgen;

namespace {

const CommandSpec kSpec = {"make",
                           {"PATH", "[EXTRA]"},
                           "make something",
                           {{"out", "DIR", "where"}, {"list", "", "only look"}}};
const std::string kUsageLine = "usage: backendgen make PATH [EXTRA] [--out DIR] [--list]\n";

struct Parsed {
  std::optional<Arguments> arguments;
  std::string err;
};

Parsed parse_words(const std::vector<std::string>& words, const CommandSpec& spec = kSpec) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, Colour::kNever);
  auto arguments = parse(spec, words, console);
  CHECK(out.str().empty());
  return {std::move(arguments), err.str()};
}

}  // namespace

TEST_CASE("options and arguments come in any order", "[command_line]") {
  const Parsed parsed = parse_words({"--list", "one", "--out=here", "two", "-C", "there"});
  REQUIRE(parsed.arguments);
  CHECK(parsed.arguments->at(0) == "one");
  CHECK(parsed.arguments->at(1) == "two");
  CHECK(parsed.arguments->at(2).empty());
  CHECK(parsed.arguments->value("out") == "here");
  CHECK(parsed.arguments->value("C") == "there");
  CHECK(parsed.arguments->has("list"));
  CHECK_FALSE(parsed.arguments->has("help"));
}

TEST_CASE("a wrong command line says what and how", "[command_line]") {
  const auto error = [](const std::vector<std::string>& words) { return parse_words(words).err; };
  CHECK(error({"x", "--otu", "y"}) ==
        "error: unknown option `--otu`\nhelp: did you mean `--out`?\n" + kUsageLine);
  CHECK(error({"x", "--wholly-other=1"}) ==
        "error: unknown option `--wholly-other`\n" + kUsageLine);
  CHECK(error({"x", "-z"}) == "error: unknown option `-z`\n" + kUsageLine);
  CHECK(error({}) == "error: `make` needs a PATH\n" + kUsageLine);
  CHECK(error({"x", "y", "z"}) == "error: unexpected argument `z`\n" + kUsageLine);
  CHECK(error({"x", "--out"}) == "error: `--out` needs a value\n" + kUsageLine);
  CHECK(error({"x", "-C"}) == "error: `-C` needs a value\n" + kUsageLine);
  CHECK(error({"x", "--list=no"}) == "error: `--list` takes no value\n" + kUsageLine);
  CHECK(error({"x", "--out", "a", "--out", "b"}) == "error: `--out` is given twice\n" + kUsageLine);
}

TEST_CASE("an option may be one a command cannot do without", "[command_line]") {
  const CommandSpec spec = {"make", {}, "make", {{"out", "DIR", "where", "", true}}};
  CHECK(parse_words({}, spec).err ==
        "error: `make` needs `--out DIR`\nusage: backendgen make --out DIR\n");
  CHECK(parse_words({"--out="}, spec).err ==
        "error: `--out` needs a value\nusage: backendgen make --out DIR\n");
}

TEST_CASE("a value may be one of a few words", "[command_line]") {
  const CommandSpec spec = {"make",
                            {"KIND", "[PATH]"},
                            "make",
                            {{"format", "FORMAT", "how", "", false, {"text", "json"}}},
                            {"box"}};
  const std::string usage = "usage: backendgen make KIND [PATH] [--format FORMAT]\n";
  CHECK(parse_words({"box", "any", "--format", "json"}, spec).arguments);
  CHECK(parse_words({"box", "--format", "jsno"}, spec).err ==
        "error: unknown format `jsno`\nhelp: did you mean `json`?\n"
        "note: the formats are `text` and `json`\n" +
            usage);
  CHECK(parse_words({"circle"}, spec).err ==
        "error: unknown kind `circle`\nnote: the only kind is `box`\n" + usage);
}

TEST_CASE("help is given whatever else is missing", "[command_line]") {
  REQUIRE(parse_words({"-h"}).arguments);
  CHECK(parse_words({"--help"}).arguments->has("help"));
}
