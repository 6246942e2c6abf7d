// SPDX-License-Identifier: Apache-2.0
#include "description/validate.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "base/utf8.h"
#include "description/c_names.h"
#include "description/torch_names.h"
#include "description/words.h"

namespace backendgen {
namespace {

Complaint complain(std::string message, std::string help = {}) {
  return {std::move(message), std::move(help)};
}

/// "it has a `$`", for the first character that `allowed` refuses; empty when it refuses none.
template <typename Allowed>
std::optional<Complaint> judge_characters(std::string_view text, Allowed allowed) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const std::string_view bytes = text.substr(at, character.bytes);
    if (character.bytes != 1 || !allowed(bytes.front())) {
      if (!character.valid) return complain("it is not UTF-8");
      if (bytes == " ") return complain("it has a blank");
      if (bytes == "\n" || bytes == "\r") return complain("it has more than one line");
      if (bytes == "`") return complain("it has a backtick");
      if (!is_printable(character.code)) {
        return complain(fmt::format("it has the character {}", code_name(character.code)));
      }
      return complain(fmt::format("it has a {}", in_ticks(bytes)));
    }
    at += character.bytes;
  }
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<Complaint> judge_length(std::string_view text, std::size_t most) {
  if (text.empty()) return complain("it is empty");
  if (text.size() > most) return complain(fmt::format("it is longer than {} characters", most));
  return std::nullopt;
}

/// `[a-z][a-z0-9_]*`, and no keyword of C++ or Python.
std::optional<Complaint> judge_lower_identifier(std::string_view name, std::size_t most) {
  if (auto complaint = judge_length(name, most)) return complaint;
  if (is_digit(name.front())) return complain("it starts with a digit");
  if (auto complaint = judge_characters(name, [](char c) { return is_word(c) || c == '-'; })) {
    return complaint;
  }
  if (name.find('-') != name.npos) {
    std::string with_underscores = lower(name);
    for (char& c : with_underscores) c = c == '-' ? '_' : c;
    return complain("it has a `-`", fmt::format("write `{}`", with_underscores));
  }
  if (name.front() == '_') return complain("it starts with `_`");
  if (lower(name) != name) {
    return complain("it has a capital letter", fmt::format("write `{}`", lower(name)));
  }
  if (is_cpp_keyword(name)) return complain("it is a keyword of C++");
  if (is_python_keyword(name)) return complain("it is a keyword of Python");
  if (name.find("__") != name.npos) return complain("C++ reserves names with `__`");
  return std::nullopt;
}

/// One identifier of Python, in ASCII.
std::optional<Complaint> judge_python_identifier(std::string_view name) {
  if (name.empty()) return complain("a part of it is empty");
  if (auto complaint = judge_characters(name, is_word)) return complaint;
  if (is_digit(name.front())) return complain(fmt::format("`{}` starts with a digit", name));
  if (is_python_keyword(name)) return complain(fmt::format("`{}` is a keyword of Python", name));
  return std::nullopt;
}

/// Namespaces that no code of a vendor adds to.
constexpr std::array<std::string_view, 2> kStandard = {"std", "posix"};
constexpr std::array<std::string_view, 4> kOfTorch = {"at", "c10", "caffe2", "torch"};

/// Targets that CMake makes itself, and libraries that a name after LIBRARIES may mean: a device
/// is a target too.
constexpr std::array<std::string_view, 10> kTargets = {
    "all",     "clean",      "depend",        "edit_cache", "help",
    "install", "preinstall", "rebuild_cache", "test",       "uninstall"};
constexpr std::array<std::string_view, 10> kLibraries = {
    "c", "dl", "gcc", "gomp", "m", "pthread", "resolv", "rt", "shm", "util"};

/// A package `foo` has a library `libfoo.so`; these are open when it is loaded.
constexpr std::array<std::string_view, 10> kTorchLibraries = {
    "c",           "c10",       "gomp",
    "m",           "shm",       "torch_cpu",
    "torch_hip",   "torch_xpu", "torch_global_deps",
    "torch_python"};

/// What stands beside the folder of the package: csrc/, tests/, CMake's build/, setup.py.
constexpr std::array<std::string_view, 9> kFolders = {"bin",  "build",   "conftest", "csrc", "dist",
                                                      "docs", "include", "setup",    "tests"};

template <std::size_t N>
bool is_any_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_reserved_namespace(std::string_view name) {
  return is_any_of(name, kStandard) || is_any_of(name, kOfTorch) || name == "backendkit";
}

/// A device's name without its digits is offered where it is one.
std::optional<Complaint> judge_digits(std::string_view name) {
  if (std::none_of(name.begin(), name.end(), is_digit)) return std::nullopt;
  std::string letters;
  for (const char c : name) {
    const bool doubled = c == '_' && !letters.empty() && letters.back() == '_';
    if (!is_digit(c) && !doubled) letters += c;
  }
  if (letters.back() == '_') letters.pop_back();
  const bool offered = letters.size() > 2 && !judge_device_name(letters);
  return complain("it has a digit, and PyTorch reads letters and `_` only",
                  offered ? "write " + in_ticks(letters) : "");
}

/// One line of printable text.
std::optional<Complaint> judge_line(std::string_view text, std::size_t most) {
  if (text.empty()) return complain("it is empty");
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const Character character = character_at(text, at);
    if (!character.valid) return complain("it is not UTF-8");
    if (text[at] == '\n' || text[at] == '\r') return complain("it has more than one line");
    if (!is_printable(character.code)) {
      return complain(fmt::format("it has the character {}", code_name(character.code)));
    }
    at += character.bytes;
  }
  if (count > most) return complain(fmt::format("it is longer than {} characters", most));
  if (text.front() == ' ' || text.back() == ' ') {
    return complain("it starts or ends with a blank");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Complaint> judge_device_name(std::string_view name) {
  if (auto complaint = judge_length(name, 32)) return complaint;
  if (is_torch_device(lower(name))) return complain("PyTorch has a device of that name");
  if (auto complaint = judge_lower_identifier(name, 32)) return complaint;
  if (auto complaint = judge_digits(name)) return complaint;
  if (is_reserved_namespace(name) || name == "aten") {
    return complain(fmt::format("`{}` is a namespace that the generated C++ uses", name));
  }
  if (is_any_of(name, kTargets)) return complain("CMake has a target of that name");
  if (is_any_of(name, kLibraries)) return complain("the linker has a library of that name");
  if (const auto taken = find_torch_name(name)) {
    return complain(fmt::format("`{}` is {} of PyTorch", taken->path, taken->kind));
  }
  if (name == "main" || is_global_c_name(name) || is_c_macro(name)) {
    return complain(
        fmt::format("C has a global `{}`, so a C++ namespace cannot be called that", name));
  }
  return std::nullopt;
}

std::optional<Complaint> judge_package_name(std::string_view name) {
  if (auto complaint = judge_lower_identifier(name, 64)) return complaint;
  if (name == "torch" || name == "torchgen" || name == "functorch" || name == "caffe2") {
    return complain("that is a package of PyTorch");
  }
  if (is_any_of(name, kTorchLibraries)) return complain("PyTorch has a library of that name");
  if (name == "backendkit") return complain("that is the package of BackendKit");
  if (is_standard_python_module(name) || name == "sitecustomize" || name == "usercustomize") {
    return complain("Python has a module of that name");
  }
  if (is_known_package(name)) return complain("another package has that name");
  if (is_any_of(name, kFolders)) return complain("projects have a folder or a file of that name");
  if (name.back() == '_') {
    return complain("it ends with `_`, which pip refuses",
                    "write " + in_ticks(name.substr(0, name.size() - 1)));
  }
  return std::nullopt;
}

std::optional<Complaint> judge_distribution_name(std::string_view name) {
  std::string module(name);
  std::replace(module.begin(), module.end(), '-', '_');
  if (!module.empty() && module.back() == '_') {
    return complain(fmt::format("it ends with `{}`, which pip refuses", name.back()),
                    "write " + in_ticks(name.substr(0, name.size() - 1)));
  }
  if (module.find("__") != module.npos) return complain("it has two separators in a row");
  return judge_package_name(module);
}

std::optional<Complaint> judge_group_name(std::string_view name) {
  if (is_process_group(lower(name))) return complain("PyTorch has a process group of that name");
  if (is_torch_device(lower(name))) return complain("PyTorch has a device of that name");
  return judge_lower_identifier(name, 32);
}

std::optional<Complaint> judge_display_name(std::string_view name) {
  return judge_line(name, 64);
}

std::optional<Complaint> judge_summary(std::string_view summary) {
  return judge_line(summary, 200);
}

std::optional<Complaint> judge_cpp_name(std::string_view name) {
  if (auto complaint = judge_length(name, 200)) return complaint;
  if (name.substr(0, 2) == "::") {
    return complain("it starts with `::`", "write " + in_ticks(name.substr(2)));
  }
  const auto parts = split(name, "::");
  if (parts.size() > 1 && is_reserved_namespace(parts.front())) {
    const char* owner = is_any_of(parts.front(), kStandard)  ? "C++"
                        : is_any_of(parts.front(), kOfTorch) ? "PyTorch"
                                                             : "BackendKit";
    return complain(fmt::format("`{}` is a namespace of {}", parts.front(), owner),
                    "put it in a namespace of your own");
  }
  for (const std::string_view part : parts) {
    if (part.empty()) return complain("a part of it is empty");
    if (auto complaint = judge_characters(part, is_word)) return complaint;
    if (is_digit(part.front())) return complain(fmt::format("`{}` starts with a digit", part));
    if (is_cpp_keyword(part)) return complain(fmt::format("`{}` is a keyword of C++", part));
    const bool capital = part.size() > 1 && part[0] == '_' && is_upper(part[1]);
    if (part.find("__") != part.npos || capital) {
      return complain(fmt::format("C++ reserves names such as `{}`", part));
    }
    if (is_c_macro(part)) return complain(fmt::format("`{}` is a macro", part));
  }
  if (parts.front() == "main" || is_global_c_name(parts.front())) {
    return complain(fmt::format("C has a global `{}`", parts.front()),
                    "put it in a namespace of your own");
  }
  return std::nullopt;
}

std::optional<Complaint> judge_header(std::string_view path) {
  if (auto complaint = judge_length(path, 200)) return complaint;
  if (path.front() == '/' || (path.size() > 1 && is_letter(path[0]) && path[1] == ':')) {
    return complain("it is an absolute path",
                    "write a path relative to the folder of backend.toml");
  }
  if (path.find('\\') != path.npos)
    return complain("it has a backslash", "write `/` between folders");
  const auto allowed = [](char c) {
    return is_word(c) || c == '.' || c == '-' || c == '+' || c == '/';
  };
  if (auto complaint = judge_characters(path, allowed)) return complaint;
  for (const std::string_view part : split(path, "/")) {
    if (part == "..") return complain("it leaves the project through `..`");
    if (part.empty() || part == ".") {
      return complain("it has an empty part or a `.` between slashes");
    }
  }
  return std::nullopt;
}

std::optional<Complaint> judge_python_module(std::string_view module) {
  if (auto complaint = judge_length(module, 200)) return complaint;
  for (const std::string_view part : split(module, ".")) {
    if (auto complaint = judge_python_identifier(part)) return complaint;
  }
  return std::nullopt;
}

std::optional<Complaint> judge_operator(std::string_view name) {
  if (auto complaint = judge_length(name, 200)) return complaint;
  if (const std::size_t colons = name.find("::"); colons != name.npos) {
    return complain(fmt::format("it names a namespace, {}", in_ticks(name.substr(0, colons + 2))),
                    "write " + in_ticks(name.substr(colons + 2)));
  }
  const auto parts = split(name, ".");
  if (parts.size() > 2) return complain("it has more than one dot");
  for (const std::string_view part : parts) {
    if (part.empty()) return complain("there is nothing on one side of the dot");
    if (auto complaint = judge_characters(part, is_word)) return complaint;
    if (is_digit(part.front())) return complain(fmt::format("`{}` starts with a digit", part));
  }
  return std::nullopt;
}

std::optional<Complaint> judge_entry_point_group(std::string_view group) {
  if (auto complaint = judge_length(group, 200)) return complaint;
  const auto allowed = [](char c) { return is_word(c) || c == '.'; };
  if (auto complaint = judge_characters(group, allowed)) return complaint;
  for (const std::string_view part : split(group, ".")) {
    if (part.empty()) return complain("a part of it is empty");
  }
  if (group == "torch.backends") return complain("backendgen writes that group itself");
  return std::nullopt;
}

std::optional<Complaint> judge_entry_point_name(std::string_view name) {
  if (auto complaint = judge_length(name, 200)) return complaint;
  return judge_characters(name, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

std::optional<Complaint> judge_script_name(std::string_view name) {
  if (auto complaint = judge_entry_point_name(name)) return complaint;
  if (!is_word(name.front())) {
    return complain(fmt::format("it starts with `{}`", name.front()));
  }
  if (is_program(lower(name))) return complain("there is a program of that name");
  return std::nullopt;
}

std::optional<Complaint> judge_entry_point_target(std::string_view target) {
  if (auto complaint = judge_length(target, 400)) return complaint;
  const std::size_t colon = target.find(':');
  auto complaint = judge_python_module(target.substr(0, colon));
  if (!complaint && colon != target.npos) complaint = judge_python_module(target.substr(colon + 1));
  if (complaint) complaint->help = "write `MODULE:NAME`";
  return complaint;
}

std::optional<Complaint> judge_python_function(std::string_view target) {
  auto complaint = judge_entry_point_target(target);
  if (!complaint && target.find(':') == target.npos) {
    complaint = Complaint{"it names no function", "write `MODULE:FUNCTION`"};
  }
  return complaint;
}

std::optional<Complaint> judge_schema_text(std::string_view text) {
  if (text.empty()) return complain("it is empty");
  if (text.size() > 2000) return complain("it is longer than 2000 characters");
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain) return complain("it has more than one line of printable ASCII");
  return std::nullopt;
}

}  // namespace backendgen
