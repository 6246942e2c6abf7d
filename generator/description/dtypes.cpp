// SPDX-License-Identifier: Apache-2.0
#include "description/dtypes.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"

namespace backendgen {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kDtypes = {{
    {"float32", "Float"},
    {"float64", "Double"},
    {"float16", "Half"},
    {"bfloat16", "BFloat16"},
    {"int64", "Long"},
    {"int32", "Int"},
    {"int16", "Short"},
    {"int8", "Char"},
    {"uint8", "Byte"},
    {"uint16", "UInt16"},
    {"uint32", "UInt32"},
    {"uint64", "UInt64"},
    {"bool", "Bool"},
    {"complex64", "ComplexFloat"},
    {"complex128", "ComplexDouble"},
    {"complex32", "ComplexHalf"},
    {"float8_e4m3fn", "Float8_e4m3fn"},
    {"float8_e5m2", "Float8_e5m2"},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
}};

}  // namespace

std::string_view scalar_type(std::string_view dtype) {
  for (const auto& [python, cpp] : kDtypes) {
    if (python == dtype) return cpp;
  }
  return {};
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const auto& [python, cpp] : kDtypes) names.emplace_back(python);
  return names;
}

std::optional<Complaint> judge_dtype(std::string_view dtype) {
  if (!scalar_type(dtype).empty()) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kAliases = {{
      {"float", "float32"},
      {"double", "float64"},
      {"half", "float16"},
      {"long", "int64"},
      {"int", "int32"},
      {"short", "int16"},
  }};
  std::string_view name = dtype;
  if (name.starts_with("torch.")) name.remove_prefix(std::string_view("torch.").size());
  for (const auto& [alias, full] : kAliases) {
    if (name == alias) name = full;
  }
  if (!scalar_type(name).empty()) {
    return Complaint{"it is not the name of a dtype", fmt::format("write `{}`", name)};
  }
  const auto near = nearest(dtype, dtype_names());
  return Complaint{"it is not the name of a dtype",
                   near ? fmt::format("did you mean `{}`?", *near)
                        : "write a name such as `float32`, `int64` or `bool`"};
}

std::vector<std::string> amp_dtype_names() {
  return {"float16", "bfloat16"};
}

std::optional<Complaint> judge_amp_dtype(std::string_view dtype) {
  const std::vector<std::string> dtypes = amp_dtype_names();
  if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) return std::nullopt;
  const auto near = nearest(dtype, dtypes);
  return Complaint{"autocast takes `float16` and `bfloat16`",
                   near ? fmt::format("did you mean `{}`?", *near) : ""};
}

}  // namespace backendgen
