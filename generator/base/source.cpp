// SPDX-License-Identifier: Apache-2.0
#include "base/source.h"

#include <algorithm>
#include <utility>

namespace backendgen {

Source::Source(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
    text_.erase(0, kByteOrderMark.size());
  }
  starts_.push_back(0);
  for (std::size_t at = 0; (at = text_.find('\n', at)) != std::string::npos; ++at) {
    starts_.push_back(at + 1);
  }
}

std::string_view Source::line(std::size_t number) const {
  if (number == 0 || number > starts_.size()) return {};
  const std::size_t begin = starts_[number - 1];
  const bool last = number == starts_.size();
  std::string_view text(text_);
  text = text.substr(begin, (last ? text.size() : starts_[number] - 1) - begin);
  if (!last && !text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

std::size_t Source::offset(std::size_t line, std::size_t column) const {
  if (line == 0 || line > starts_.size()) return text_.size();
  const std::size_t begin = starts_[line - 1];
  return begin + std::min(column == 0 ? 0 : column - 1, text_.size() - begin);
}

Span Source::span(std::size_t begin, std::size_t end) const {
  begin = std::min(begin, text_.size());
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  const std::size_t number = static_cast<std::size_t>(after - starts_.begin());
  const std::size_t start = starts_[number - 1];
  const std::size_t line_end = std::max(start + line(number).size(), begin);
  const std::size_t stop = std::clamp(end, begin, line_end);
  return {number, begin - start + 1, std::max<std::size_t>(stop - begin, 1)};
}

}  // namespace backendgen
