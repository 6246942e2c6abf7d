// SPDX-License-Identifier: Apache-2.0
#include "description/read_operators.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "description/keys.h"
#include "description/read_custom.h"
#include "description/validate.h"

namespace backendgen {
namespace {

/// Reads what [operators] and a kernel's own table have in common.
void read_kernel_keys(const Value* table, const std::vector<Key>& keys, ValueReader& reader,
                      Kernel& kernel) {
  reader.read(table, keys, kernel);
  const Member* dtypes = find(table, "dtypes");
  if (dtypes == nullptr || dtypes->value.kind != Value::Kind::kList) return;
  if (!dtypes->value.items.empty()) return;
  reader.wrong_value(*dtypes, "`dtypes` is empty, so no kernel would ever be called")
      .help.push_back("leave it out for every dtype");
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
      kernel.function = reader_.text(member, *key_of("operators.kernels", "function").rule);
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
    static const std::vector<std::string> keys = names_of(keys_of("operators.kernels"));
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
    read_kernel_keys(&table, keys_of("operators.kernels"), reader_, kernel);
    if (find(&table, "function") == nullptr) {
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
  const std::vector<Key> keys = keys_of("operators");
  reader.read(operators, keys, result);
  Kernel defaults;
  read_kernel_keys(operators, keys, reader, defaults);
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
