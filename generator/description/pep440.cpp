// SPDX-License-Identifier: Apache-2.0
#include "description/pep440.h"

#include <charconv>
#include <limits>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/text.h"

namespace backendgen {
namespace {

/// A version, whose order is that of its members.
struct Version {
  int epoch = 0;
  std::vector<int> release;  // without zeros at its end
  int phase = 4;             // 0: only .dev; 1, 2, 3: a, b, rc; 4: none of them
  int pre = 0;
  int post = -1;
  int dev = std::numeric_limits<int>::max();

  bool is_before_release() const { return phase != 4 || dev != std::numeric_limits<int>::max(); }
  auto tie() const { return std::tie(epoch, release, phase, pre, post, dev); }
};

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

int take_number(std::string_view& text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

Version parse(std::string_view text) {
  Version version;
  version.release.push_back(take_number(text));
  if (take(text, "!")) {
    version.epoch = version.release.front();
    version.release.front() = take_number(text);
  }
  while (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
    text.remove_prefix(1);
    version.release.push_back(take_number(text));
  }
  while (!version.release.empty() && version.release.back() == 0) version.release.pop_back();
  version.phase = take(text, "a") ? 1 : take(text, "b") ? 2 : take(text, "rc") ? 3 : 4;
  if (version.phase != 4) version.pre = take_number(text);
  if (take(text, ".post")) version.post = take_number(text);
  if (take(text, ".dev")) {
    version.dev = take_number(text);
    if (version.phase == 4 && version.post < 0) version.phase = 0;
  }
  return version;
}

bool admits_clause(std::string_view clause, const Version& version) {
  for (const std::string_view op : {">=", "<=", "==", "!=", ">", "<"}) {
    if (!take(clause, op)) continue;
    const Version bound = parse(clause);
    const auto ours = version.tie();
    const auto theirs = bound.tie();
    if (op == ">=") return ours >= theirs;
    if (op == "<=") return ours <= theirs;
    if (op == "==") return ours == theirs;
    if (op == "!=") return ours != theirs;
    const bool same = version.epoch == bound.epoch && version.release == bound.release;
    const bool of_bound = same && version.phase == bound.phase && version.pre == bound.pre;
    if (op == ">") {  // post-releases of the bound are not after it
      return ours > theirs && !(of_bound && version.post >= 0 && bound.post < 0);
    }
    // Nor is what leads to the bound before it: 5rc1 is not before 5.
    const bool leads = bound.post < 0 ? same : of_bound && version.post == bound.post;
    return ours < theirs && !(leads && !bound.is_before_release());
  }
  return false;
}

}  // namespace

bool admits_version(std::string_view requirement, std::string_view version) {
  const Version parsed = parse(version);
  for (const std::string_view clause : split(requirement, ",")) {
    if (!admits_clause(clause, parsed)) return false;
  }
  return true;
}

std::string requirement_for(std::string_view version) {
  const Version parsed = parse(version);
  const auto number = [&](std::size_t index) {
    return index < parsed.release.size() ? parsed.release[index] : 0;
  };
  const std::string epoch = parsed.epoch == 0 ? "" : fmt::format("{}!", parsed.epoch);
  const std::string lower = parsed.is_before_release()
                                ? std::string(version)
                                : fmt::format("{}{}.{}", epoch, number(0), number(1));
  return fmt::format(">={},<{}{}", lower, epoch, number(0) + 1);
}

}  // namespace backendgen
