// SPDX-License-Identifier: Apache-2.0
#include "description/read_wheel.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/suggest.h"
#include "description/keys.h"
#include "description/pep440.h"
#include "description/validate.h"

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

/// Reads the table [wheel.runtime].
class RuntimePackageReader {
 public:
  RuntimePackageReader(ValueReader& reader, Diagnostics& problems, Description& result)
      : reader_(reader), problems_(problems), result_(result) {}

  void read(const Member& member) {
    if (member.value.kind != Value::Kind::kTable) {
      reader_.wrong_type(member, "a table")
          .help.push_back("write `[wheel.runtime]`, and `version` and `libraries` below it");
      return;
    }
    const Value& table = member.value;
    const std::vector<Key> keys = keys_of("wheel.runtime");
    reader_.refuse_unknown_keys(table, "[wheel.runtime]", names_of(keys));
    for (const Key& key : keys) require(member, key);
    reader_.read(&table, keys, result_);
    const bool named = find(&table, "package") != nullptr;
    if (!named) {
      for (const Key& key : keys) set_default(key, result_);
    }
    judge_package(member, named);
    if (const Member* list = find(&table, "libraries");
        list != nullptr && list->value.kind == Value::Kind::kList && list->value.items.empty()) {
      reader_.wrong_value(*list, "`libraries` is empty").help.push_back(add_line("libraries"));
    }
    judge_version(find(&table, "requires") != nullptr);
  }

 private:
  std::string add_line(std::string_view name) const {
    const Key& key = key_of("wheel.runtime", name);
    std::string value = quote(for_device(key.example, result_.name.value));
    if (is_list(key)) value = "[" + value + "]";
    return fmt::format("add a line such as `{} = {}`", name, value);
  }

  void require(const Member& member, const Key& key) {
    if (!key.required || find(&member.value, key.name) != nullptr) return;
    for (const Member& other : member.value.members) {
      if (nearest(other.key, {std::string(key.name)})) return;  // misspelt, and reported as such
    }
    problems_.error(fmt::format("[wheel.runtime] has no `{}`", key.name), place(member))
        .help.push_back(add_line(key.name));
  }

  void judge_package(const Member& member, bool named) {
    const Text& package = result_.runtime_package;
    if (package.value.empty() || result_.name.value.empty()) return;
    const Span span = named ? package.span : place(member);
    const auto complaint = named ? std::nullopt : judge_distribution_name(package.value);
    std::string module = package.value;
    std::replace(module.begin(), module.end(), '-', '_');
    if (complaint || module == result_.package.value) {
      problems_
          .error(fmt::format("{} cannot be a package name: {}", in_ticks(package.value),
                             complaint ? complaint->message : "the backend's package has it"),
                 span)
          .help.push_back("write a line such as `package = \"foo-runtime\"`");
    }
  }

  /// The backend has to work with what is beside it.
  void judge_version(bool required) {
    const Text& version = result_.runtime_version;
    Text& clauses = result_.runtime_requires;
    if (version.value.empty()) return;
    if (!required) {
      clauses = {requirement_for(version.value), {}};
    } else if (!clauses.value.empty() && !admits_version(clauses.value, version.value)) {
      problems_
          .error(fmt::format("version {} of {} does not meet {}", version.value,
                             in_ticks(result_.runtime_package.value), in_ticks(clauses.value)),
                 clauses.span)
          .help.push_back(
              fmt::format("write `requires = \"{}\"`, or leave it out, which means the same",
                          requirement_for(version.value)));
    }
  }

  ValueReader& reader_;
  Diagnostics& problems_;
  Description& result_;
};

}  // namespace

void read_wheel(const Value* wheel, ValueReader& reader, Diagnostics& problems,
                Description& result) {
  reader.read(wheel, keys_of("wheel"), result);
  refuse_both(result.bundle, "bundle", result.exclude, "exclude", problems);
  if (const Member* runtime = find(wheel, "runtime")) {
    RuntimePackageReader(reader, problems, result).read(*runtime);
  }
}

}  // namespace backendgen
