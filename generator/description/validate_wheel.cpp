// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "description/validate.h"

namespace backendgen {
namespace {

/// Whether `text` is a number without leading zeros.
bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 5 && std::all_of(text.begin(), text.end(), is_digit) &&
         (text.size() == 1 || text.front() != '0');
}

/// Judges a relative path with wildcards; the help has an example.
std::optional<Complaint> judge_path(std::string_view pattern, const std::string& example) {
  const std::string help = "write a path such as " + in_ticks(example);
  if (pattern.empty()) return Complaint{"it is empty", help};
  if (pattern.size() > 200) return Complaint{"it is longer than 200 characters", ""};
  if (pattern.front() == '/') {
    return Complaint{"it does not lie in the project", "copy it into the project, and " + help};
  }
  for (const std::string_view part : split(pattern, "/")) {
    if (part.empty()) return Complaint{"a part of it is empty", help};
    if (part == "..") return Complaint{"it leaves the project's folder", help};
    if (part == ".") return Complaint{"it has a part `.`", help};
    for (const char c : part) {
      const bool known = is_letter(c) || is_digit(c) ||
                         std::string_view("._+-*?").find(c) != std::string_view::npos;
      if (!known) return Complaint{"it has a character that such paths do not have", help};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Complaint> judge_platform(std::string_view platform) {
  constexpr std::string_view kHead = "manylinux_";
  const std::string help = "write a tag such as `manylinux_2_28`";
  if (!platform.starts_with(kHead)) {
    return Complaint{"it is not a manylinux tag `manylinux_X_Y`", help};
  }
  const std::string_view rest = platform.substr(kHead.size());
  const std::size_t middle = rest.find('_');
  if (middle != rest.npos && is_number(rest.substr(0, middle))) {
    const std::string_view minor = rest.substr(middle + 1);
    if (is_number(minor)) return std::nullopt;
    const std::size_t end = minor.find('_');
    if (end != minor.npos && is_number(minor.substr(0, end))) {
      const std::size_t length = kHead.size() + middle + 1 + end;
      return Complaint{"it names an architecture", "write " + in_ticks(platform.substr(0, length))};
    }
  }
  return Complaint{"it is not a manylinux tag `manylinux_X_Y`", help};
}

std::optional<Complaint> judge_project_library(std::string_view pattern) {
  return judge_path(pattern, "driver/lib/libfoo.so.1");
}

std::optional<Complaint> judge_project_file(std::string_view pattern) {
  return judge_path(pattern, "driver/EULA.txt");
}

std::optional<Complaint> judge_license(std::string_view expression) {
  const std::string help = "write an SPDX expression such as `MIT` or `LicenseRef-Foo`";
  if (expression.empty()) return Complaint{"it is empty", help};
  if (expression.size() > 200) return Complaint{"it is longer than 200 characters", ""};
  const auto is_of_name = [](char c) { return is_letter(c) || is_digit(c); };
  for (const char c : expression) {
    if (!is_of_name(c) && std::string_view(".+() -").find(c) == std::string_view::npos) {
      return Complaint{"it has a character that SPDX expressions do not have", help};
    }
  }
  const char first = expression.front();
  const char last = expression.back();
  if (!(is_of_name(first) || first == '(') || !(is_of_name(last) || last == ')' || last == '+')) {
    return Complaint{"it does not begin and end as an SPDX expression", help};
  }
  return std::nullopt;
}

std::optional<Complaint> judge_library_pattern(std::string_view pattern) {
  const std::string help = "write a name such as `libfoo.so.1` or `libfoo.so.*`";
  if (pattern.empty()) return Complaint{"it is empty", help};
  if (pattern.size() > 200) return Complaint{"it is longer than 200 characters", ""};
  if (pattern.find('/') != pattern.npos) {
    const std::string_view name = pattern.substr(pattern.rfind('/') + 1);
    return Complaint{"it is a path", name.empty() ? help : "write " + in_ticks(name)};
  }
  for (const char c : pattern) {
    const bool known = is_letter(c) || is_digit(c) ||
                       std::string_view("._+-*?[]!").find(c) != std::string_view::npos;
    if (!known) return Complaint{"it has a character that names of libraries do not have", help};
  }
  if (pattern.starts_with("libtorch") || pattern.starts_with("libc10")) {
    return Complaint{"it is a library of PyTorch, which a wheel never contains", ""};
  }
  if (std::none_of(pattern.begin(), pattern.end(), is_letter)) {
    return Complaint{"it names no library", help};
  }
  return std::nullopt;
}

}  // namespace backendgen
