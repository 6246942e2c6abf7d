// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include "catch.h"

using namespace backendgen;

TEST_CASE("the nearest word is at most a third of the word away") {
  const std::vector<std::string> known = {"name", "package", "version", "summary"};
  CHECK(nearest("vresion", known) == "version");
  CHECK(nearest("nmae", known) == "name");
  CHECK(nearest("pakage", known) == "package");
  CHECK(nearest("summmary", known) == "summary");
  CHECK(nearest("name", known) == "name");
  CHECK_FALSE(nearest("count", known));
  CHECK_FALSE(nearest("nm", known));
  CHECK_FALSE(nearest("", known));
  CHECK_FALSE(nearest("name", {}));
}

TEST_CASE("never more than three edits, and the first of equals") {
  CHECK(nearest("abcdefghijklmnop", {"abcdefghijklmxyz"}) == "abcdefghijklmxyz");
  CHECK_FALSE(nearest("abcdefghijklmnop", {"abcdefghijklwxyz"}));
  CHECK(nearest("cat", {"bat", "hat"}) == "bat");
}
