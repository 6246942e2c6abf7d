// SPDX-License-Identifier: Apache-2.0
// The code of fmt 9, of which its headers without FMT_HEADER_ONLY have only declarations.
#include <fmt/format-inl.h>

namespace fmt::detail {

template auto decimal_point_impl(locale_ref) -> char;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;

}  // namespace fmt::detail
