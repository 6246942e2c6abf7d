// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "description/validate.h"

namespace backendgen {

namespace {

constexpr std::size_t kLongest = 200;
constexpr std::string_view kWord =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";

}  // namespace

std::optional<Complaint> judge_library_name(std::string_view name) {
  if (name.empty()) return Complaint{"it is empty", {}};
  if (name.size() > kLongest) return Complaint{"it is longer than 200 characters", {}};
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) {
    const std::string base(name.substr(slash + 1));
    return Complaint{"it has a folder", base.empty() ? "" : "write `" + base + "`"};
  }
  if (name.find_first_not_of(kWord) != name.npos) {
    return Complaint{"it has a character that names of libraries do not have", {}};
  }
  if (name.find(".so") == name.npos) {
    return Complaint{"it has no `.so`", "write a name such as `libfoo.so.1`"};
  }
  return std::nullopt;
}

std::optional<Complaint> judge_device_node(std::string_view path) {
  if (path.size() > kLongest) return Complaint{"it is longer than 200 characters", {}};
  constexpr std::string_view kStart = "/dev/";
  if (!path.starts_with(kStart) || path.size() == kStart.size()) {
    return Complaint{"it is not below /dev", "write a path such as `/dev/foo*`"};
  }
  if (path.find_first_not_of(std::string(kWord) + "/*?") != path.npos) {
    return Complaint{"it has a character that such paths do not have", {}};
  }
  const auto parts = split(path.substr(1), "/");
  if (std::any_of(parts.begin(), parts.end(),
                  [](std::string_view part) { return part.empty() || part == ".."; })) {
    return Complaint{"a part of it is empty or `..`", {}};
  }
  return std::nullopt;
}

}  // namespace backendgen
