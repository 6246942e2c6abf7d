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
#include "description/read_amp.h"
#include "description/read_operators.h"
#include "description/validate.h"
#include "description/value_reader.h"

namespace backendgen {
namespace {

struct TableKeys {
  std::string name;
  std::vector<std::string> keys;
};

const std::vector<TableKeys>& known_tables() {
  static const std::vector<TableKeys> tables = {
      {"backend", {"name", "package", "version", "summary", "runtime", "header"}},
      {"torch", {"requires"}},
      {"autoload", {"layout", "on_failure", "imports"}},
      {"operators", {"fallback", "inputs", "dtypes", "unsupported", "kernels", "custom"}},
      {"amp", {"dtypes", "lower_precision_fp", "fp32", "fp32_set_opt_dtype", "promote"}},
      {"entry-points", {}},
  };
  return tables;
}

class DescriptionReader {
 public:
  DescriptionReader(const Document& document, const std::string& path, Diagnostics& problems)
      : document_(document), path_(path), problems_(problems), reader_(problems) {}

  Description read() {
    report_unknown_tables();
    read_backend();
    read_torch();
    read_autoload();
    read_operators(table("operators"), reader_, problems_, result_);
    read_amp(table("amp"), reader_, problems_, result_);
    if (const Value* groups = table("entry-points")) read_groups(*groups, "");
    refuse_generated_imports();
    check_cpp_names(result_, problems_);
    return std::move(result_);
  }

 private:
  void report_unknown_tables() {
    std::vector<std::string> names;
    for (const TableKeys& known : known_tables()) names.push_back(known.name);
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
    for (const TableKeys& known : known_tables()) {
      if (known.name == name && !known.keys.empty()) report_unknown_keys(member->value, known);
    }
    return &member->value;
  }

  void report_unknown_keys(const Value& table, const TableKeys& known) {
    for (const Member& member : table.members) {
      if (std::find(known.keys.begin(), known.keys.end(), member.key) != known.keys.end()) continue;
      Diagnostic& problem = problems_.error(
          fmt::format("unknown key {} in [{}]", in_ticks(member.key), known.name), place(member));
      if (nearest(member.key, known.keys) || !send_to_table(problem, member.key)) {
        suggest_known(problem, member.key, known.keys, "keys");
      }
    }
  }

  /// Says in which table a key belongs; false when no table has it.
  static bool send_to_table(Diagnostic& problem, const std::string& key) {
    for (const TableKeys& known : known_tables()) {
      if (std::find(known.keys.begin(), known.keys.end(), key) == known.keys.end()) continue;
      problem.help.push_back(fmt::format("put `{}` below `[{}]`", key, known.name));
      return true;
    }
    return false;
  }

  void read_backend() {
    const Member* head = find(&document_.root, "backend");
    const Value* backend = table("backend");
    if (head == nullptr && !document_.may_have_had("[")) {
      problems_.error(fmt::format("{} has no [backend] table", path_))
          .help.push_back(
              "add one: `[backend]`, and below it `name = \"foo\"` and `version = \"0.1.0\"`");
    }
    result_.name = reader_.text(find(backend, "name"), "a device name", judge_device_name);
    result_.package = reader_.text(find(backend, "package"), "a package name", judge_package_name);
    result_.version = reader_.text(find(backend, "version"), "a version", judge_version);
    result_.summary = reader_.text(find(backend, "summary"), "the summary", judge_summary);
    result_.runtime =
        reader_.text(find(backend, "runtime"), "the runtime's C++ type", judge_cpp_name);
    result_.header = reader_.text(find(backend, "header"), "the runtime's header", judge_header);
    if (backend != nullptr) {
      require(*head, "name", "foo");
      require(*head, "version", "0.1.0");
    }
    const std::string& name = result_.name.value;
    const auto fill = [&](Text& text, const char* key, std::string value) {
      if (find(backend, key) == nullptr) text = {std::move(value), {}};
    };
    fill(result_.package, "package", "torch_" + name);
    if (!name.empty() && find(backend, "package") == nullptr) judge_default_package();
    fill(result_.summary, "summary", "PyTorch backend for " + name + " devices");
    fill(result_.runtime, "runtime", name + "::Runtime");
    fill(result_.header, "header", "runtime.h");
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

  void require(const Member& head, const char* key, const char* example) {
    if (find(&head.value, key) != nullptr || document_.may_have_had(key)) return;
    for (const Member& member : head.value.members) {
      if (nearest(member.key, {key})) return;  // misspelt, and reported as such
    }
    problems_.error(fmt::format("[{}] has no `{}`", head.key, key), place(head))
        .help.push_back(fmt::format("add a line such as `{} = \"{}\"`", key, example));
  }

  void read_torch() {
    const Value* torch = table("torch");
    const Member* requirement = find(torch, "requires");
    result_.torch_requires =
        reader_.text(requirement, "a requirement of PyTorch", judge_torch_requirement);
    if (requirement == nullptr) result_.torch_requires = {">=2.5", {}};
  }

  void read_autoload() {
    const Value* autoload = table("autoload");
    const std::size_t layout =
        reader_.choice(find(autoload, "layout"), "layout", {"package", "submodule"}, 0);
    const std::size_t on_failure =
        reader_.choice(find(autoload, "on_failure"), "behaviour", {"warn", "error"}, 0);
    result_.layout = layout == 0 ? Layout::kPackage : Layout::kSubmodule;
    result_.on_failure = on_failure == 0 ? OnFailure::kWarn : OnFailure::kError;
    result_.imports =
        reader_.texts(find(autoload, "imports"), "a Python module", judge_python_module);
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
    Text target = reader_.text(&member, "the target of an entry point", judge_entry_point_target);
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
