// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include "catch.h"

using namespace backendgen;

TEST_CASE("the first byte that is not UTF-8 is found") {
  constexpr auto npos = std::string_view::npos;
  CHECK(find_invalid_utf8("") == npos);
  CHECK(find_invalid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D") == npos);
  CHECK(find_invalid_utf8("a\xE9") == 1);
  CHECK(find_invalid_utf8("\xC3") == 0);
  CHECK(find_invalid_utf8("ab\x80") == 2);
  CHECK(find_invalid_utf8("\xC0\x80") == 0);          // too long for its code
  CHECK(find_invalid_utf8("\xE0\x80\x80") == 0);      // likewise
  CHECK(find_invalid_utf8("\xED\xA0\x80") == 0);      // a surrogate
  CHECK(find_invalid_utf8("\xF4\x90\x80\x80") == 0);  // beyond Unicode
  CHECK(find_invalid_utf8("\xFF\xFE") == 0);
}

TEST_CASE("what is not printable becomes an escape") {
  CHECK(printable("plain \xC3\xBC \xE9\xA2\xA8") == "plain \xC3\xBC \xE9\xA2\xA8");
  CHECK(printable("a\nb\r\tc") == "a\\nb\\r\\tc");
  CHECK(printable("\x1B[31m") == "\\x1b[31m");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\xE2\x80\xAE") == "\\u202e");
  CHECK(printable("\xE2\x80\x8B") == "\\u200b");
  CHECK(printable("\xC2\x85") == "\\u0085");
  CHECK(printable("\xF3\xA0\x80\x81") == "\\U000e0001");
  CHECK(printable("\xFF") == "\\xff");
  CHECK(printable_lines("a\n\x1B\n") == "a\n\\x1b\n");
}

TEST_CASE("columns of a terminal") {
  CHECK(width(U'a') == 1);
  CHECK(width(0xE9) == 1);
  CHECK(width(0x301) == 0);
  CHECK(width(0x98A8) == 2);
  CHECK(width(0x1F40D) == 2);
  CHECK(code_name(0xA0) == "U+00A0");
}
