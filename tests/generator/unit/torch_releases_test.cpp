// SPDX-License-Identifier: Apache-2.0
#include "torch/releases.h"

#include "catch.h"

using namespace backendgen;

namespace {

std::string admitted(std::string_view requirement) {
  std::string text;
  for (const TorchRelease& release : admitted_releases(requirement)) {
    text += release.version.text() + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("tested releases are one of each minor release, in order", "[torch]") {
  TorchVersion before = oldest();
  --before.minor;
  for (const TorchRelease& release : tested_releases()) {
    CHECK(release.version.minor == before.minor + 1);
    CHECK(release.oldest_python <= release.newest_python);
    before = release.version;
  }
  CHECK(before == newest_tested());
}

TEST_CASE("a requirement admits the newest patch release of each minor one", "[torch]") {
  CHECK(admitted(">=2.12,<2.14") == "2.12.1 2.13.0 ");
  CHECK(admitted("==2.12.0") == "2.12.0 ");
  CHECK(admitted(">=2.12,!=2.12.1,<2.13") == "2.12.0 ");
  CHECK(admitted("!=2.13.0,>=2.13,<2.14").empty());
  CHECK(admitted(">=3.0").empty());
}

TEST_CASE("a row of releases has a hole where a release is left out", "[torch]") {
  const auto missing = [](const TorchVersion& before, const TorchVersion& next) {
    const auto found = missing_between(before, next);
    return found ? found->minor_text() : "none";
  };
  CHECK(missing({2, 11, 0}, {2, 12, 1}) == "none");
  CHECK(missing({2, 11, 0}, {2, 13, 0}) == "2.12");
  CHECK(missing({2, 13, 0}, {3, 0, 0}) == "2.14");
  const TorchVersion newest = newest_tested();
  CHECK(missing(newest, {newest.major, newest.minor + 2, 0}) ==
        TorchVersion{newest.major, newest.minor + 1, 0}.minor_text());
  CHECK(missing(newest, {newest.major + 1, 0, 0}) == "none");
  CHECK(missing({newest.major, newest.minor + 1, 0}, {newest.major + 1, 0, 0}) == "none");
  CHECK(missing(newest, {newest.major + 1, 1, 0}) ==
        TorchVersion{newest.major + 1, 0, 0}.minor_text());
  CHECK(missing(newest, {newest.major + 2, 0, 0}) ==
        TorchVersion{newest.major + 1, 0, 0}.minor_text());
}

TEST_CASE("a release of a known minor has its Pythons, another those of the newest", "[torch]") {
  CHECK(release_of({2, 5, 0}).newest_python == tested_releases().front().newest_python);
  CHECK(release_of({2, 5, 0}).version.text() == "2.5.0");
  CHECK(release_of({3, 0, 0}).oldest_python == tested_releases().back().oldest_python);
  CHECK(release_of({3, 0, 0}).version.text() == "3.0.0");
}
