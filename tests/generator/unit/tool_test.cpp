// SPDX-License-Identifier: Apache-2.0
#include "base/tool.h"

#include <sstream>

#include "catch.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

struct Shown {
  Status status;
  std::string screen;
};

Shown show(const Outcome& outcome) {
  FakeDisk disk;
  RealProcess process;
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, Colour::kNever);
  Context context{disk, process, console, "/", {}};
  const Status status = show_tool(outcome, "it broke", context);
  return {status, out.str() + err.str()};
}

}  // namespace

TEST_CASE("a tool runs with its whole package and finds nothing in the working folder") {
  // verify_wheel imports backendkit_tools.screen, and gets as far as its arguments.
  RealProcess process;
  const Command command = tool_command("python3", "verify_wheel", {"one"}, "/");
  const Outcome outcome = process.run(command);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("not enough values to unpack") != std::string::npos);
}

TEST_CASE("what a tool says is shown, its error last") {
  const Shown good = show({0, "Verified\tall of it\n", "", ""});
  CHECK(good.status == kDone);
  CHECK(good.screen == "    Verified all of it\n");

  const Shown bad = show({1, "error\tno\nhelp\tdo it\nnote\twhy\n", "", ""});
  CHECK(bad.status == kNo);
  CHECK(bad.screen == "error: no\nhelp: do it\nnote: why\n");
}

TEST_CASE("a tool that breaks is shown with what it wrote") {
  const Shown shown = show({1, "", "Traceback\n\nValueError: x\n", ""});
  CHECK(shown.status == kNo);
  CHECK(shown.screen == "error: it broke\nnote: Traceback\nnote: ValueError: x\n");
}
