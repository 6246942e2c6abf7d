// SPDX-License-Identifier: Apache-2.0
#include "description/read.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "description/check_cpp_names.h"
#include "description/document.h"
#include "description/generated_modules.h"
#include "description/keys.h"
#include "description/read_amp.h"
#include "description/read_operators.h"
#include "description/read_wheel.h"
#include "description/validate.h"
#include "description/value_reader.h"

namespace backendgen {
namespace {

class DescriptionReader {
 public:
  DescriptionReader(const Document& document, const std::string& path, Diagnostics& problems)
      : document_(document), path_(path), problems_(problems), reader_(problems) {}

  Description read() {
    report_unknown_tables();
    read_backend();
    read_table("torch");
    read_autoload();
    read_operators(table("operators"), reader_, problems_, result_);
    read_amp(table("amp"), reader_, problems_, result_);
    read_distributed();
    read_wheel(table("wheel"), reader_, problems_, result_);
    read_table("doctor");
    if (const Value* groups = table("entry-points")) read_groups(*groups, "");
    refuse_generated_imports();
    check_cpp_names(result_, problems_);
    return std::move(result_);
  }

 private:
  void report_unknown_tables() {
    std::vector<std::string> names;
    for (const Table& known : tables()) names.emplace_back(known.name);
    for (const Member& member : document_.root.members) {
      if (std::find(names.begin(), names.end(), member.key) != names.end()) continue;
      if (member.value.kind == Value::Kind::kTable) {
        Diagnostic& problem =
            problems_.error("unknown table " + in_ticks("[" + member.key + "]"), place(member));
        suggest_known(problem, member.key, names, "tables");
      } else {
        Diagnostic& problem = problems_.error(
            "unknown key " + in_ticks(member.key) + " outside a table", member.span);
        if (!send_to_table(problem, member.key)) {
          problem.notes.push_back("every key stands below a table such as `[backend]`");
        }
      }
    }
  }

  /// The table `name`; null when it is missing or something else, which is reported.
  const Value* table(const std::string& name) {
    const Member* member = find(&document_.root, name);
    if (member == nullptr) return nullptr;
    if (member->value.kind != Value::Kind::kTable) {
      reader_.wrong_type(*member, "a table")
          .help.push_back(fmt::format("write `[{}]`, and the keys below it", name));
      return nullptr;
    }
    if (name != "entry-points") report_unknown_keys(member->value, name);
    return &member->value;
  }

  void report_unknown_keys(const Value& table, const std::string& name) {
    const std::vector<std::string> known = names_of(keys_of(name));
    for (const Member& member : table.members) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
      Diagnostic& problem = problems_.error(
          fmt::format("unknown key {} in [{}]", in_ticks(member.key), name), place(member));
      if (nearest(member.key, known) || !send_to_table(problem, member.key)) {
        suggest_known(problem, member.key, known, "keys");
      }
    }
  }

  /// Says in which table a key belongs; false when no table has it.
  static bool send_to_table(Diagnostic& problem, const std::string& key) {
    for (const Table& table : tables()) {
      for (const Key& known : keys_of(table.name)) {
        if (known.name != key) continue;
        problem.help.push_back(fmt::format("put `{}` below `[{}]`", key, table.name));
        return true;
      }
    }
    return false;
  }

  /// Reads the keys of a table that need no reader of their own.
  const Value* read_table(const std::string& name) {
    const Value* values = table(name);
    const std::vector<Key> keys = keys_of(name);
    reader_.read(values, keys, result_);
    for (const Key& key : keys) {
      if (find(values, key.name) == nullptr) set_default(key, result_);
    }
    return values;
  }

  void read_backend() {
    const Member* head = find(&document_.root, "backend");
    const Value* backend = read_table("backend");
    if (head == nullptr && !document_.may_have_had("[")) {
      problems_.error(fmt::format("{} has no [backend] table", path_))
          .help.push_back(
              "add one: `[backend]`, and below it `name = \"foo\"` and `version = \"0.1.0\"`");
    }
    if (backend == nullptr) return;
    for (const Key& key : keys_of("backend")) {
      if (key.required) require(*head, key);
    }
    if (!result_.name.value.empty() && find(backend, "package") == nullptr) judge_default_package();
  }

  void judge_default_package() {
    const auto complaint = judge_package_name(result_.package.value);
    if (!complaint) return;
    problems_
        .error(fmt::format("{} cannot be a package name: {}", in_ticks(result_.package.value),
                           complaint->message),
               result_.name.span)
        .help.push_back("add a line such as `package = \"vendor_torch\"`");
  }

  void require(const Member& head, const Key& key) {
    const std::string name(key.name);
    if (find(&head.value, name) != nullptr || document_.may_have_had(name)) return;
    for (const Member& member : head.value.members) {
      if (nearest(member.key, {name})) return;  // misspelt, and reported as such
    }
    problems_.error(fmt::format("[{}] has no `{}`", head.key, name), place(head))
        .help.push_back(fmt::format("add a line such as `{} = \"{}\"`", name, key.example));
  }

  void read_autoload() {
    read_table("autoload");
    const std::string& package = result_.package.value;
    for (const Text& import : result_.imports) {
      if (package.empty() || package == "torch_") break;
      if (import.value.compare(0, package.size() + 1, package + ".") == 0) continue;
      problems_
          .error(fmt::format("{} is not a module below `{}`", in_ticks(import.value), package),
                 import.span)
          .notes.push_back("`imports` names Python modules of this package");
    }
  }

  void read_distributed() {
    const Value* distributed = read_table("distributed");
    const std::string& group = result_.group.value;
    if (result_.name.value.empty() || find(distributed, "name") != nullptr) return;
    const auto complaint = judge_group_name(group);
    if (!complaint) return;
    problems_
        .error(fmt::format("{} cannot be the name of a process group: {}", in_ticks(group),
                           complaint->message),
               result_.name.span)
        .help.push_back(fmt::format(
            "add `[distributed]`, and below it a line such as `name = \"{}\"`", "vendor" + group));
  }

  void refuse_generated_imports() {
    const std::vector<std::string> ours = generated_modules(result_);
    for (const Text& import : result_.imports) {
      if (import.value.find('.') == std::string::npos) continue;  // reported: not below the package
      if (std::find(ours.begin(), ours.end(), import.value) == ours.end()) continue;
      problems_.error(in_ticks(import.value) + " is a generated module", import.span)
          .notes.push_back("`imports` names Python modules of your own");
    }
  }

  /// A group of entry points, or, since a dot in a bare name makes a table in a table, groups.
  void read_groups(const Value& value, const std::string& above) {
    for (const Member& member : value.members) {
      const std::string name = above.empty() ? member.key : above + "." + member.key;
      if (member.value.kind != Value::Kind::kTable) {
        if (above.empty()) {
          reader_.wrong_type(member, "a table of entry points")
              .help.push_back(
                  "write `[entry-points.GROUP]`, and below it lines such as `foo = "
                  "\"torch_foo.extras:foo\"`");
        }
        continue;
      }
      const auto is_table = [](const Member& inner) {
        return inner.value.kind == Value::Kind::kTable;
      };
      const auto& members = member.value.members;
      read_groups(member.value, name);
      if (std::all_of(members.begin(), members.end(), is_table)) continue;
      if (const auto complaint = judge_entry_point_group(name)) {
        reader_.cannot_be(name, place(member), "a group of entry points", *complaint);
        continue;
      }
      for (const Member& inner : members) {
        if (!is_table(inner)) read_entry_point(name, member, inner);
      }
    }
  }

  /// Whether pip makes a program of each entry point, all of them in one folder.
  static bool is_script_group(const std::string& group) {
    return group == "console_scripts" || group == "gui_scripts";
  }

  void read_entry_point(const std::string& group, const Member& table, const Member& member) {
    const bool script = is_script_group(group);
    const auto complaint =
        script ? judge_script_name(member.key) : judge_entry_point_name(member.key);
    if (complaint) {
      const char* what = script ? "the name of a script" : "the name of an entry point";
      reader_.cannot_be(member.key, member.span, what, *complaint);
      return;
    }
    Text target =
        reader_.text(member, {"the target of an entry point", judge_entry_point_target, "target"});
    if (target.value.empty()) return;
    if (script && target.value.find(':') == std::string::npos) {
      problems_.error(fmt::format("{} names no function", in_ticks(target.value)), target.span)
          .help.push_back(fmt::format("write `{}:main`", target.value));
      return;
    }
    auto at = std::find_if(result_.entry_points.begin(), result_.entry_points.end(),
                           [&](const EntryPointGroup& other) { return other.name.value == group; });
    if (at == result_.entry_points.end()) {
      at = result_.entry_points.insert(at, EntryPointGroup{{group, place(table)}, {}});
    }
    for (const EntryPointGroup& others : result_.entry_points) {
      const bool one_folder = script && is_script_group(others.name.value);
      if (others.name.value != group && !one_folder) continue;
      for (const EntryPoint& other : others.entries) {
        if (other.name.value != member.key) continue;
        problems_.error(fmt::format("{} is given twice", in_ticks(member.key)), member.span)
            .earlier = Label{other.name.span, "first given here"};
        return;
      }
    }
    at->entries.push_back({{member.key, member.span}, std::move(target)});
  }

  const Document& document_;
  const std::string& path_;
  Diagnostics& problems_;
  ValueReader reader_;
  Description result_;
};

}  // namespace

Description read_partial_description(const Source& source, Diagnostics& problems) {
  const auto document = parse_document(source, problems);
  if (!document) return {};
  return DescriptionReader(*document, source.path(), problems).read();
}

std::optional<Description> read_description(const Source& source, Diagnostics& problems) {
  const std::size_t before = problems.error_count();
  Description description = read_partial_description(source, problems);
  if (problems.error_count() != before) return std::nullopt;
  return description;
}

}  // namespace backendgen
