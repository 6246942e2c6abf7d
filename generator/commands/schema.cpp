// SPDX-License-Identifier: Apache-2.0
#include "commands/schema.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "base/text.h"
#include "description/dtypes.h"
#include "description/keys.h"
#include "glue/template.h"

namespace backendgen {
namespace {

template <class Texts>
std::string quoted(const Texts& texts) {
  std::vector<std::string> result;
  for (const auto& text : texts) result.push_back(quote(text));
  return fmt::format("{}", fmt::join(result, ", "));
}

/// What the JSON Schema says of a key's value.
std::string value_schema(const Key& key) {
  if (is_boolean(key)) return "\"type\": \"boolean\"";
  if (key.rule == nullptr) return fmt::format("\"enum\": [{}]", quoted(words_of(key)));
  const std::string one = fmt::format("\"$ref\": \"#/$defs/{}\"", key.rule->schema);
  if (!is_list(key)) return one;
  return fmt::format(
      "\"type\": \"array\",\n\"uniqueItems\": true,\n\"minItems\": {},\n"
      "\"items\": {{ {} }}",
      is_of_kernels(key) || key.required ? 1 : 0, one);
}

/// The value of a description without the key, in JSON; empty where it is no fixed one.
std::string initial(const Key& key) {
  if (is_boolean(key)) return std::string(key.initial);
  if (key.rule == nullptr) return quote(words_of(key).front());
  if (is_list(key) && key.without.empty()) return "[]";
  const bool fixed = !key.initial.empty() && key.initial.find('<') == key.initial.npos;
  return fixed ? quote(key.initial) : "";
}

/// The members of "properties" for these keys.
std::string properties(const std::vector<Key>& keys, std::size_t indent) {
  std::vector<std::string> all;
  for (const Key& key : keys) {
    std::string body = fmt::format("\"description\": {},\n", quote(key.meaning));
    body += value_schema(key);
    if (const std::string value = initial(key); !value.empty()) {
      body += fmt::format(",\n\"default\": {}", value);
    } else if (!key.required) {
      const std::string_view text = key.initial.empty() ? key.without : key.initial;
      body += fmt::format(",\n\"$comment\": {}", quote(fmt::format("default: {}", text)));
    }
    if (!key.example.empty()) {
      const std::string example = quote(for_device(key.example, "foo"));
      body += fmt::format(",\n\"examples\": [{}]", is_list(key) ? "[" + example + "]" : example);
    }
    std::string text = fmt::format("{}: {{\n", quote(key.name));
    for (const std::string_view line : split(body, "\n")) text += fmt::format("  {}\n", line);
    all.push_back(text + "}");
  }
  const std::string joined = fmt::format("{}", fmt::join(all, ",\n"));
  std::string result;
  for (const std::string_view line : split(joined, "\n")) {
    if (!result.empty()) result += "\n";
    result.append(indent, ' ').append(line);
  }
  return result;
}

std::string required(const std::vector<Key>& keys) {
  std::vector<std::string_view> names;
  for (const Key& key : keys) {
    if (key.required) names.push_back(key.name);
  }
  return quoted(names);
}

}  // namespace

int run_schema(Context& context) {
  Values values;
  for (const Table& table : tables()) {
    const std::vector<Key> keys = keys_of(table.name);
    if (keys.empty()) {
      values.texts["entry_points"] = quote(table.meaning);
      continue;
    }
    Values one;
    one.texts = {{"name", quote(table.name)},
                 {"meaning", quote(table.meaning)},
                 {"required", required(keys)},
                 {"keys", properties(keys, 8)}};
    one.sections["has_required"] = !required(keys).empty();
    values.lists["tables"].push_back(std::move(one));
  }
  const std::vector<Key> kernel = keys_of("operators.kernels");
  const std::vector<Key> custom = keys_of("operators.custom");
  values.texts["required_of_kernels"] = required(kernel);
  values.texts["keys_of_kernels"] = properties(kernel, 14);
  values.texts["required_of_custom"] = required(custom);
  values.texts["keys_of_custom"] = properties(custom, 10);
  const std::vector<Key> runtime = keys_of("wheel.runtime");
  values.texts["required_of_runtime"] = required(runtime);
  values.texts["keys_of_runtime"] = properties(runtime, 8);
  values.texts["dtypes"] = quoted(dtype_names());
  values.texts["amp_dtypes"] = quoted(amp_dtype_names());
  context.console.data(fill(find_template("schema/backend.schema.json"), values));
  return kDone;
}

}  // namespace backendgen
