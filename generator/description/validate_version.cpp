// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "description/validate.h"
#include "torch/install.h"

namespace backendgen {
namespace {

/// Reads a text from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }

  bool take(std::string_view word) {
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  /// A number without leading zeros, of at most 9 digits.
  bool number() {
    std::size_t digits = 0;
    while (digits < text_.size() && is_digit(text_[digits])) ++digits;
    if (digits == 0 || digits > 9 || (digits > 1 && text_[0] == '0')) return false;
    text_.remove_prefix(digits);
    return true;
  }

  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

bool take_operator(Reader& reader) {
  return reader.take(">=") || reader.take("<=") || reader.take("==") || reader.take("!=") ||
         reader.take(">") || reader.take("<");
}

bool is_public_version(Reader& reader) {
  if (!reader.number()) return false;
  if (reader.take("!") && !reader.number()) return false;
  while (!reader.done()) {
    Reader ahead = reader;
    if (!ahead.take(".") || !ahead.number()) break;
    reader = ahead;
  }
  if (reader.take("a") || reader.take("b") || reader.take("rc")) {
    if (!reader.number()) return false;
  }
  if (reader.take(".post") && !reader.number()) return false;
  if (reader.take(".dev") && !reader.number()) return false;
  return reader.done();
}

/// Whether a release from the oldest on, there or to come, meets a requirement. Between the
/// releases that its clauses name all are alike, so those are tried, and the next after each.
bool can_be_met(std::string_view requirement) {
  std::vector<TorchVersion> tried = {oldest()};
  for (std::size_t at = 0; at < requirement.size();) {
    const std::size_t comma = std::min(requirement.find(',', at), requirement.size());
    const std::size_t digit = requirement.find_first_of("0123456789", at);
    const auto bound = TorchVersion::parse(requirement.substr(digit, comma - digit));
    at = comma + 1;
    if (!bound) continue;
    tried.push_back(*bound);
    tried.push_back({bound->major, bound->minor, bound->patch + 1});
  }
  return std::any_of(tried.begin(), tried.end(), [&](const TorchVersion& one) {
    return one >= oldest() && admits(requirement, one);
  });
}

}  // namespace

std::optional<Complaint> judge_version(std::string_view version) {
  if (version.empty()) return Complaint{"it is empty", "write `0.1.0`"};
  if (version.size() > 64) return Complaint{"it is longer than 64 characters", ""};
  Reader reader(version);
  if (is_public_version(reader)) return std::nullopt;
  const std::string help = "write a version such as `0.1.0`, `1.0rc1` or `1.0.post1`";
  if (version.front() == 'v' && version.size() > 1) {
    Reader after(version.substr(1));
    if (is_public_version(after))
      return Complaint{"it starts with `v`", "write " + in_ticks(version.substr(1))};
  }
  if (!reader.rest().empty() && reader.rest().front() == '+') {
    return Complaint{"it has a local part, which package indexes refuse",
                     "write " + in_ticks(version.substr(0, version.size() - reader.rest().size()))};
  }
  return Complaint{"it is not a version by PEP 440 in its normal form", help};
}

std::optional<Complaint> judge_package_requirement(std::string_view requirement) {
  const std::string help = "write clauses such as `>=4.2,<5`";
  if (requirement.empty()) return Complaint{"it is empty", help};
  if (requirement.size() > 200) return Complaint{"it is longer than 200 characters", ""};
  if (requirement.find(' ') != requirement.npos) return Complaint{"it has a blank", help};
  for (const std::string_view clause : split(requirement, ",")) {
    Reader reader(clause);
    if (!take_operator(reader)) {
      return Complaint{"a clause starts with `>=`, `<=`, `>`, `<`, `==` or `!=`", help};
    }
    const std::string_view version = reader.rest();
    if (!is_public_version(reader)) return Complaint{in_ticks(version) + " is not a version", help};
  }
  return std::nullopt;
}

std::optional<Complaint> judge_torch_requirement(std::string_view requirement) {
  const std::string help = "write clauses such as `>=2.5,<2.15`";
  if (requirement.empty()) return Complaint{"it is empty", help};
  if (requirement.size() > 200) return Complaint{"it is longer than 200 characters", ""};
  if (requirement.find(' ') != requirement.npos) {
    std::string without(requirement);
    without.erase(std::remove(without.begin(), without.end(), ' '), without.end());
    const bool good = !without.empty() && !judge_torch_requirement(without);
    return Complaint{"it has a blank", good ? "write " + in_ticks(without) : help};
  }
  for (std::size_t at = 0; at <= requirement.size();) {
    const std::size_t comma = std::min(requirement.find(',', at), requirement.size());
    const std::string_view clause = requirement.substr(at, comma - at);
    at = comma + 1;
    if (clause.empty()) return Complaint{"it has an empty clause", help};
    Reader reader(clause);
    if (!take_operator(reader)) {
      return Complaint{"a clause starts with `>=`, `<=`, `>`, `<`, `==` or `!=`", help};
    }
    const std::string_view release = reader.rest();
    const bool read = reader.number() && reader.take(".") && reader.number() &&
                      (!reader.take(".") || reader.number()) && reader.done();
    if (!read) return Complaint{in_ticks(release) + " is not a release X.Y or X.Y.Z", help};
  }
  if (!can_be_met(requirement)) {
    return Complaint{"no release of PyTorch from " BACKENDGEN_OLDEST_TORCH " on meets it", help};
  }
  return std::nullopt;
}

}  // namespace backendgen
