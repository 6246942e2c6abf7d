// SPDX-License-Identifier: Apache-2.0
#include "description/read_wheel.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "description/keys.h"

namespace backendgen {
namespace {

/// Reports the names that are in two lists: a library has one place.
void refuse_both(const std::vector<Text>& one, const char* one_key, const std::vector<Text>& two,
                 const char* two_key, Diagnostics& problems) {
  for (const Text& name : two) {
    const auto other = std::find_if(one.begin(), one.end(),
                                    [&](const Text& text) { return text.value == name.value; });
    if (other == one.end()) continue;
    // The later one in the file is the surplus one.
    const bool later = other->span < name.span;
    Diagnostic& problem =
        problems.error(fmt::format("`{}` is in `{}` and in `{}`", name.value,
                                   later ? one_key : two_key, later ? two_key : one_key),
                       later ? name.span : other->span);
    problem.earlier = Label{later ? other->span : name.span, "first listed here"};
  }
}

}  // namespace

void read_wheel(const Value* wheel, ValueReader& reader, Diagnostics& problems,
                Description& result) {
  reader.read(wheel, keys_of("wheel"), result);
  refuse_both(result.bundle, "bundle", result.exclude, "exclude", problems);
}

}  // namespace backendgen
