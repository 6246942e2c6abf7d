// SPDX-License-Identifier: Apache-2.0
#include "description/read_operators.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "description/dtypes.h"
#include "description/read_custom.h"
#include "description/validate.h"

namespace backendgen {
namespace {

/// Reads what [operators] and a kernel's own table have in common.
void read_choices(const Value* table, ValueReader& reader, Kernel& kernel) {
  const auto choose = [&](const char* key, const char* what, const std::vector<std::string>& words,
                          auto& value) {
    using Choice = std::remove_reference_t<decltype(value)>;
    value = static_cast<Choice>(
        reader.choice(find(table, key), what, words, static_cast<std::size_t>(value)));
  };
  choose("inputs", "form of inputs", {"strided", "dense"}, kernel.inputs);
  choose("unsupported", "answer", {"fallback", "error"}, kernel.unsupported);
  if (const Member* dtypes = find(table, "dtypes")) {
    kernel.dtypes = reader.texts(dtypes, "a dtype of a kernel", judge_dtype);
    if (dtypes->value.kind == Value::Kind::kList && dtypes->value.items.empty()) {
      reader.wrong_value(*dtypes, "`dtypes` is empty, so no kernel would ever be called")
          .help.push_back("leave it out for every dtype");
    }
  }
}

class KernelReader {
 public:
  KernelReader(const Kernel& defaults, ValueReader& reader, Diagnostics& problems)
      : defaults_(defaults), reader_(reader), problems_(problems) {}

  void read(const Member& member, std::vector<Kernel>& kernels) {
    if (const auto complaint = judge_operator(member.key)) {
      reader_.cannot_be(member.key, member.span, "an operator", *complaint);
      return;
    }
    Kernel kernel = defaults_;
    kernel.op = {member.key, member.span};
    const Value& value = member.value;
    if (value.kind != Value::Kind::kTable || value.members.empty()) {
      kernel.function = reader_.text(&member, "a C++ function", judge_cpp_name);
    } else if (const Member* unquoted =
                   member.key.find('.') == std::string::npos ? overload(value) : nullptr) {
      const std::string op = member.key + "." + unquoted->key;
      problems_.error(fmt::format("operator {} needs quotes", in_ticks(op)), member.span)
          .help.push_back(fmt::format("write `\"{}\" = \"...\"`", op));
      return;
    } else {
      read_table(member, kernel);
    }
    // A kernel with a bad function stays, so that its operator is looked up as well.
    if (!kernel.function.span.known()) kernel.function = {member.key, value.span};
    kernels.push_back(std::move(kernel));
  }

 private:
  static const std::vector<std::string>& keys() {
    static const std::vector<std::string> keys = {"function", "inputs", "dtypes", "unsupported"};
    return keys;
  }

  /// `add.out = "foo::add"` is a table `add` with the key `out`: that key, else null.
  static const Member* overload(const Value& table) {
    const Member& first = table.members.front();
    const bool known = std::any_of(table.members.begin(), table.members.end(), [](const auto& one) {
      return std::find(keys().begin(), keys().end(), one.key) != keys().end();
    });
    return known || table.members.size() > 1 ? nullptr : &first;
  }

  void read_table(const Member& member, Kernel& kernel) {
    const Value& table = member.value;
    reader_.refuse_unknown_keys(table, fmt::format("the kernel of `{}`", member.key), keys());
    read_choices(&table, reader_, kernel);
    const Member* function = find(&table, "function");
    kernel.function = reader_.text(function, "a C++ function", judge_cpp_name);
    if (function == nullptr) {
      problems_.error(fmt::format("the kernel of `{}` has no `function`", member.key), member.span)
          .help.push_back("add `function = \"foo::add\"`, the C++ function");
    }
  }

  const Kernel& defaults_;
  ValueReader& reader_;
  Diagnostics& problems_;
};

}  // namespace

void read_operators(const Value* operators, ValueReader& reader, Diagnostics& problems,
                    Description& result) {
  const std::size_t fallback =
      reader.choice(find(operators, "fallback"), "fallback", {"cpu", "error"}, 0);
  result.fallback = fallback == 0 ? Fallback::kCpu : Fallback::kError;
  Kernel defaults;
  read_choices(operators, reader, defaults);
  read_custom(operators, reader, problems, result);
  const Member* kernels = find(operators, "kernels");
  if (kernels == nullptr) return;
  if (kernels->value.kind != Value::Kind::kTable) {
    reader.wrong_type(*kernels, "a table of operators and C++ functions")
        .help.push_back(
            "write `[operators.kernels]`, and below it lines such as `\"add.out\" = "
            "\"foo::add\"`");
    return;
  }
  KernelReader one(defaults, reader, problems);
  result.kernels.reserve(kernels->value.members.size());
  for (const Member& member : kernels->value.members) one.read(member, result.kernels);
}

}  // namespace backendgen
