// SPDX-License-Identifier: Apache-2.0
#include "description/read_custom.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "description/check_custom.h"
#include "description/keys.h"
#include "description/two_results.h"
#include "description/validate.h"
#include "description/words.h"
#include "torch/cpp_types.h"
#include "torch/parse_schema.h"
#include "torch/python_types.h"

namespace backendgen {
namespace {

/// Namespaces of operators that PyTorch itself registers and that a device may be called.
constexpr std::array<std::string_view, 22> kReserved = {"prim",
                                                        "prims",
                                                        "quantized",
                                                        "quantized_decomposed",
                                                        "inductor",
                                                        "rngprims",
                                                        "debugprims",
                                                        "c10d",
                                                        "symm_mem",
                                                        "static_runtime",
                                                        "profiler",
                                                        "mkldnn_prepacked",
                                                        "streams",
                                                        "onednn",
                                                        "fsdp",
                                                        "higher_order",
                                                        "mkl",
                                                        "inductor_prims",
                                                        "debug_mode_ops",
                                                        "load_library",
                                                        "loaded_libraries",
                                                        "import_module"};

/// The type of schemas that somebody who writes `name` has in mind.
std::optional<std::string> meant_type(const std::string& name) {
  static const std::vector<std::pair<std::string_view, std::string_view>> kElsewhere = {
      {"double", "float"},
      {"float64", "float"},
      {"int64_t", "int"},
      {"int64", "int"},
      {"int32_t", "int"},
      {"size_t", "int"},
      {"long", "int"},
      {"string", "str"},
      {"string_view", "str"},
      {"boolean", "bool"},
      {"number", "Scalar"},
      {"Number", "Scalar"},
      {"dtype", "ScalarType"},
      {"torch.dtype", "ScalarType"},
      {"torch.Tensor", "Tensor"},
      {"at.Tensor", "Tensor"},
      {"TensorList", "Tensor[]"}};
  static const std::vector<std::string> kTypes = {"Tensor", "Scalar", "SymInt",       "ScalarType",
                                                  "Layout", "Device", "MemoryFormat", "Generator",
                                                  "float",  "int",    "bool",         "str"};
  for (const auto& [elsewhere, meant] : kElsewhere) {
    if (elsewhere == name) return std::string(meant);
  }
  return nearest(name, kTypes);
}

/// Whether a text has the columns of its source, which has no escapes then.
bool is_literal(const Text& text) {
  return text.span.length == text.value.size() + 2;
}

/// Where a word stands first in a text; the whole text when it is not literal.
Span span_of(const Text& text, std::string_view word) {
  const auto is_word = [&](std::size_t at) {
    const auto c = static_cast<unsigned char>(text.value[at]);
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  };
  const Span& span = text.span;
  if (!is_literal(text)) return span;
  for (std::size_t at = 0; (at = text.value.find(word, at)) != std::string::npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at > 0 && is_word(at - 1)) || (end < text.value.size() && is_word(end))) continue;
    return {span.line, span.column + 1 + at, word.size()};
  }
  return span;
}

class CustomReader {
 public:
  CustomReader(ValueReader& reader, Diagnostics& problems, Description& result)
      : reader_(reader), problems_(problems), result_(result) {}

  void read(const Value& table) {
    const std::vector<Key> keys = keys_of("operators.custom");
    reader_.refuse_unknown_keys(table, "[[operators.custom]]", names_of(keys));
    for (const Key& key : keys) {
      if (!key.required || find(&table, key.name) != nullptr) continue;
      problems_
          .error(fmt::format("a table of [[operators.custom]] has no `{}`", key.name), table.span)
          .help.push_back(fmt::format("add a line such as `{} = \"{}\"`", key.name,
                                      for_device(key.example, device())));
    }
    CustomOperator custom;
    reader_.read(&table, keys, custom);
    const Member* fake = find(&table, "fake");
    if (const Member* meta = find(&table, "meta"); fake != nullptr && meta != nullptr) {
      problems_.error("`fake` and `meta` say the same", fake->span).earlier =
          Label{meta->span, "one of them is enough"};
    }
    if (const Member* setup = find(&table, "setup_context");
        setup != nullptr && find(&table, "backward") == nullptr) {
      problems_.error("`setup_context` has no `backward`", setup->span)
          .help.push_back("add `backward = \"MODULE:FUNCTION\"`");
    }
    if (!custom.text.span.known() || !read_schema(custom)) return;
    if (custom.schema->views()) refuse_of_views(table);
    const Member* backward = find(&table, "backward");
    if (backward != nullptr && custom.schema->writes()) {
      problems_
          .error("an operator that writes to its arguments cannot have a `backward`",
                 backward->span)
          .notes.push_back("PyTorch takes formulas only for functional operators");
    }
    result_.custom.push_back(custom);
  }

 private:
  const std::string& device() const { return result_.name.value; }

  /// What else a table may have, one function is for the views of all tensors.
  void refuse_of_views(const Value& table) {
    for (const Key& key : keys_of("operators.custom")) {
      const Member* member = find(&table, key.name);
      if (key.required || member == nullptr) continue;
      problems_
          .error(fmt::format("an operator that returns a view cannot have a `{}`", key.name),
                 member->span)
          .notes.push_back(
              "its `kernel` is called for every device and calls PyTorch's operators, which have "
              "gradients and shapes");
    }
  }

  bool read_schema(CustomOperator& custom) {
    const std::string& text = custom.text.value;
    const std::size_t colons = text.find("::");
    const std::size_t open = text.find('(');
    const std::string space = colons < open ? text.substr(0, colons) : "";
    Span place = custom.text.span;
    ++place.column;  // after the quote
    if (space.empty() || space != device()) {
      if (device().empty()) return false;  // reported
      place.length = std::max<std::size_t>(space.size(), 1);
      problems_
          .error(space.empty() ? "the schema has no namespace"
                               : fmt::format("{} is not this device's namespace", in_ticks(space)),
                 place)
          .help.push_back(fmt::format("start it with `{}::`", device()));
      return false;
    }
    if (std::find(kReserved.begin(), kReserved.end(), space) != kReserved.end()) {
      place.length = space.size();
      problems_.error(fmt::format("PyTorch has operators in the namespace `{}`", space), place)
          .help.push_back("give the device another name");
      return false;
    }
    const std::size_t skipped = colons + 2;
    place.column += skipped;
    Diagnostics found;
    custom.schema = parse_schema(std::string_view(text).substr(skipped), place, found);
    for (const Diagnostic& one : found.sorted()) {
      problems_.error(one.message, is_literal(custom.text) ? one.span : custom.text.span);
    }
    return custom.schema && judge(custom);
  }

  /// Says which types of the schema nobody knows; false when there is one.
  bool judge_types(const CustomOperator& custom) {
    std::vector<std::string> names;
    const auto look_at = [&](const Type& type) {
      const bool seen = std::find(names.begin(), names.end(), type.name) != names.end();
      if (type.atom == Atom::kOther && !seen) names.push_back(type.name);
    };
    for (const Argument& argument : custom.schema->arguments()) look_at(argument.type);
    for (const Return& result : custom.schema->returns()) look_at(result.type);
    for (const std::string& name : names) {
      Diagnostic& problem = problems_.error(
          fmt::format("{} is not a type of schemas", in_ticks(name)), span_of(custom.text, name));
      if (const auto meant = meant_type(name)) {
        problem.help.push_back(fmt::format("did you mean `{}`?", *meant));
      }
    }
    return names.empty();
  }

  bool judge(CustomOperator& custom) {
    if (!judge_types(custom)) return false;
    const std::string name = custom.schema->name().text();
    const std::string python = custom_python_name(*custom.schema);
    if (const auto good = judge_custom(*custom.schema); !good) {
      problems_.error(fmt::format("`{}` cannot be registered: {}", name, good.why()),
                      custom.text.span);
      return false;
    }
    for (const CustomOperator& other : result_.custom) {
      if (custom_python_name(*other.schema) != python) continue;
      const bool same = other.schema->name().text() == name;
      problems_
          .error(same ? fmt::format("operator `{}` is defined twice", name)
                      : fmt::format("two operators would be called `{}` in Python", python),
                 custom.text.span)
          .earlier = Label{other.text.span, "first defined here"};
      return false;
    }
    judge_functions(custom);
    return true;
  }

  /// C++ tells functions of one name apart by their parameters, not by what they return.
  void judge_functions(const CustomOperator& custom) {
    const Signature ours = *custom_signature(*custom.schema);
    for (const CustomOperator& other : result_.custom) {
      const Signature theirs = *custom_signature(*other.schema);
      if (ours.return_type == theirs.return_type) continue;
      if (ours.type().substr(ours.return_type.size()) !=
          theirs.type().substr(theirs.return_type.size())) {
        continue;
      }
      for (const Text* function : {&custom.kernel, &custom.cpu, &custom.meta}) {
        for (const Text* used : {&other.kernel, &other.cpu, &other.meta}) {
          if (function->value.empty() || function->value != used->value) continue;
          report_two_results({*function, custom.schema->name().text(), ours.return_type},
                             {*used, other.schema->name().text(), theirs.return_type}, problems_);
          return;
        }
      }
    }
  }

  ValueReader& reader_;
  Diagnostics& problems_;
  Description& result_;
};

}  // namespace

void read_custom(const Value* operators, ValueReader& reader, Diagnostics& problems,
                 Description& result) {
  const Member* member = find(operators, "custom");
  if (member == nullptr) return;
  const auto& items = member->value.items;
  const bool tables = member->value.kind == Value::Kind::kList &&
                      std::all_of(items.begin(), items.end(), [](const Value& item) {
                        return item.kind == Value::Kind::kTable;
                      });
  if (!tables) {
    reader.wrong_type(*member, "a list of tables")
        .help.push_back("write `[[operators.custom]]`, and below it `schema` and `kernel`");
    return;
  }
  CustomReader one(reader, problems, result);
  for (const Value& item : items) one.read(item);
}

}  // namespace backendgen
