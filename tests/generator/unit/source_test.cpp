// SPDX-License-Identifier: Apache-2.0
#include "base/source.h"

#include "catch.h"

using namespace backendgen;

TEST_CASE("a source gives its lines without their ends") {
  const Source source("a", "one\ntwo\r\n\nlast");
  CHECK(source.line(1) == "one");
  CHECK(source.line(2) == "two");
  CHECK(source.line(3).empty());
  CHECK(source.line(4) == "last");
  CHECK(source.line(0).empty());
  CHECK(source.line(5).empty());
}

TEST_CASE("a byte order mark is no part of the text") {
  const Source source("a", "\xEF\xBB\xBFone");
  CHECK(source.text() == "one");
  CHECK(source.line(1) == "one");
}

TEST_CASE("places of a source are offsets and back") {
  const Source source("a", "one\ntwo\n");
  CHECK(source.offset(2, 2) == 5);
  CHECK(source.offset(2, 99) == 8);
  CHECK(source.offset(9, 1) == 8);
  CHECK(source.span(5, 7) == Span{2, 2, 2});
}

TEST_CASE("a span ends with its line and is never empty") {
  const Source source("a", "one\r\ntwo");
  CHECK(source.span(1, 8) == Span{1, 2, 2});
  CHECK(source.span(3, 3) == Span{1, 4, 1});
  CHECK(source.span(8, 8) == Span{2, 4, 1});
  CHECK(source.span(99, 100) == Span{2, 4, 1});
  CHECK(Source("a", "").span(0, 1) == Span{1, 1, 1});
}
