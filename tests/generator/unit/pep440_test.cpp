// SPDX-License-Identifier: Apache-2.0
#include "description/pep440.h"

#include "catch.h"

using namespace backendgen;

TEST_CASE("versions that a requirement admits") {
  struct Row {
    const char* requirement;
    const char* version;
    bool admits;
  };
  const Row rows[] = {
      {">=4.2,<5", "4.2", true},
      {">=4.2,<5", "4.2.0", true},
      {">=4.2,<5", "4.10", true},
      {">=4.2,<5", "4.1.9", false},
      {">=4.2,<5", "5", false},
      {">=4.2,<5", "4.2rc1", false},
      {">=4.2,<5", "5.0rc1", false},
      {">=4.2,<5", "5.dev1", false},
      {">=4.2,<5rc1", "5.0a1", true},
      {">=4.2,<5", "1!4.2", false},
      {">=1!4.2,<1!5", "1!4.2", true},
      {">=4.2rc1", "4.2rc2", true},
      {">=4.2rc1", "4.2b9", false},
      {">=4.2", "4.2.post1", true},
      {">4.2", "4.2.post1", false},
      {">4.2", "4.2.1", true},
      {">4.2.post1", "4.2.post2", true},
      {">4.2b1", "4.2.post1", true},
      {">4.2b1", "4.2b1.post1", false},
      {"<4.2.post1", "4.2rc1", true},
      {"<4.2.post1", "4.2.post1.dev0", false},
      {"<4.2.post0.dev0", "4.2b0.post0", true},
      {"<=4.2", "4.2.post1", false},
      {"<=4.2", "4.2.dev1", true},
      {"==4.2", "4.2.0.0", true},
      {"==4.2", "4.2.post1", false},
      {"!=4.2", "4.2.0", false},
      {"!=4.2,>=4", "4.2.1", true},
      {">=4.2a1", "4.2a1.dev1", false},
      {">=4.2a1.dev1", "4.2a1", true},
      {">=0", "0", true},
  };
  for (const Row& row : rows) {
    INFO(row.requirement << " and " << row.version);
    CHECK(admits_version(row.requirement, row.version) == row.admits);
  }
}

TEST_CASE("what a version requires by itself") {
  CHECK(requirement_for("4.2.1") == ">=4.2,<5");
  CHECK(requirement_for("4") == ">=4.0,<5");
  CHECK(requirement_for("0.3") == ">=0.3,<1");
  CHECK(requirement_for("1!4.2") == ">=1!4.2,<1!5");
  CHECK(requirement_for("4.2.0.post1") == ">=4.2,<5");
  CHECK(requirement_for("4.2.0rc1") == ">=4.2.0rc1,<5");
  CHECK(requirement_for("4.2.0.dev3") == ">=4.2.0.dev3,<5");
  for (const char* version : {"0", "4", "4.2rc1", "1!0.1.dev2", "4.2.post1.dev1", "9.9.9"}) {
    INFO(version);
    CHECK(admits_version(requirement_for(version), version));
  }
}
