// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>

// Kineto's headers write two lines of text with fmt. PyTorch's libraries do not export fmt, so a
// backend's library would have 90 KB of it; and before 2.8, PyTorch does not come with its headers.
// Kineto gets this function in its place, unless a program has included fmt before.
#ifndef FMT_FORMAT_H_

namespace backendkit_fmt {

/// Returns `text` with each `{}` replaced by a value; numbers as streams write them.
template <class... Values>
std::string format(std::string_view text, const Values&... values) {
  std::ostringstream out;
  const auto put = [&](const auto& value) {
    const std::size_t place = text.find("{}");
    out << text.substr(0, place) << value;
    text.remove_prefix(place + 2);
  };
  (put(values), ...);
  out << text;
  return out.str();
}

}  // namespace backendkit_fmt

#define FMT_FORMAT_H_  // what fmt/format.h would define
#define fmt backendkit_fmt
#include <kineto/libkineto.h>
#undef fmt
#undef FMT_FORMAT_H_

#else
#include <kineto/libkineto.h>
#endif
