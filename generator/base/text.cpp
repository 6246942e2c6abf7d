// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

namespace backendgen {

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == text.npos) return parts;
    at = end + separator.size();
  }
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> words;
  for (std::string_view word : split(list, ",")) {
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

std::string enumerate(const std::vector<std::string>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) result += i + 1 == words.size() ? " and " : ", ";
    result += "`" + words[i] + "`";
  }
  return result;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, "\n")) lines.emplace_back(line);
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace backendgen
