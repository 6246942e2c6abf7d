// SPDX-License-Identifier: Apache-2.0
#include "doctor/programs.h"

#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLimit{10};
constexpr std::pair<int, int> kOldestCMake{3, 22};

/// What `#define NAME VALUE` says in the output of `-dM`.
std::optional<std::string> macro(const std::string& text, const std::string& name) {
  for (const std::string& line : lines_of(text)) {
    const std::string start = "#define " + name + " ";
    if (line.starts_with(start)) return line.substr(start.size());
  }
  return std::nullopt;
}

/// "12.2.0", of `__GNUC__` and the like.
std::string compiler_version(const std::string& macros) {
  using Parts = std::array<const char*, 3>;
  const bool clang = macro(macros, "__clang_major__").has_value();
  const Parts parts = clang ? Parts{"__clang_major__", "__clang_minor__", "__clang_patchlevel__"}
                            : Parts{"__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"};
  std::string version;
  for (const char* part : parts) {
    const auto number = macro(macros, part);
    if (!number) return "of an unknown version";
    version += (version.empty() ? "" : ".") + *number;
  }
  return version;
}

/// The last line that a program wrote which says something.
std::vector<std::string> last_line(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::erase(lines, "");
  return lines.empty() ? lines : std::vector<std::string>{lines.back()};
}

/// What to say of a program that was started in vain; empty when it ran.
std::string trouble(const Outcome& outcome) {
  if (outcome.timed_out) return fmt::format("does not end within {} s", kLimit.count());
  if (outcome.status == -1) return "cannot be started: " + outcome.why;
  return outcome.status == 0 ? "" : fmt::format("ends with status {}", outcome.status);
}

Outcome run(std::vector<std::string> words, const Context& context) {
  return context.process.run({std::move(words), {}, {{"LC_ALL", "C"}}, {}, kLimit});
}

/// The compiler as CMake chooses it: $CXX, else the first of these that is there.
CheckRow check_compiler(Verdict missing, const Context& context) {
  CheckRow row{missing, "compiler", "compiler", "", {}, "`apt-get install g++`"};
  const std::string named = context.environment("CXX").value_or("");
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  if (!named.empty()) candidates = {split_list(named).front()};
  for (const std::string& candidate : candidates) {
    // CXX may have options after the program, as in `ccache g++`.
    std::vector<std::string> words;
    for (const std::string_view word : split(candidate, " ")) {
      if (!word.empty()) words.emplace_back(word);
    }
    if (words.empty()) continue;
    for (const char* word : {"-std=c++20", "-E", "-dM", "-x", "c++", "-include", "concepts",
                             "-include", "span", "-include", "version", "/dev/null"}) {
      words.emplace_back(word);
    }
    const Outcome outcome = run(words, context);
    if (outcome.status == -1 && named.empty()) continue;
    if (outcome.status == -1) {
      row.text = fmt::format("`{}`, which CXX names, {}", candidate, trouble(outcome));
      row.help = "`unset CXX`, or set it to a C++20 compiler";
      return row;
    }
    const std::string version = compiler_version(outcome.out);
    if (outcome.status == 0 && macro(outcome.out, "__cpp_lib_concepts")) {
      return {Verdict::kGood,
              row.check,
              row.subject,
              fmt::format("{} {}, C++20", candidate, version),
              {},
              {}};
    }
    row.text = outcome.status == 0
                   ? fmt::format("`{}` {} has no C++20 standard library", candidate, version)
                   : fmt::format("`{}` cannot compile C++20", candidate);
    row.why = last_line(outcome.err);
    row.help = "`apt-get install g++` gives one that can (g++ 11 or newer); CXX names another";
    return row;
  }
  row.text = "found no C++ compiler";
  row.why = {"building a backend needs one; using an installed backend does not"};
  return row;
}

/// The numbers of "cmake version 3.25.1".
std::optional<std::pair<int, int>> two_numbers(std::string_view text) {
  std::pair<int, int> numbers;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, numbers.first);
  if (wrong != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, numbers.second).ec != std::errc()) return std::nullopt;
  return numbers;
}

/// Runs `NAME --version` from the folder of Python's programs, else from PATH.
Outcome ask_version(const std::string& name, const std::string& python, Context& context) {
  const fs::path folder = fs::path(python).parent_path();
  if (!folder.empty()) {
    const fs::path own = context.folder / folder / name;
    if (context.disk.look(own) == Entry::kFile) return run({own.string(), "--version"}, context);
  }
  return run({name, "--version"}, context);
}

CheckRow check_cmake(const std::string& python, Verdict missing, Context& context) {
  const Outcome outcome = ask_version("cmake", python, context);
  CheckRow row{missing, "cmake", "cmake", "", {}, "`python -m pip install cmake`"};
  constexpr std::string_view kStart = "cmake version ";
  const std::string first = outcome.out.substr(0, outcome.out.find('\n'));
  if (outcome.status == -1) {
    row.text = "found no `cmake`";
    row.why = {"building a backend needs it; using an installed backend does not"};
  } else if (const std::string why = trouble(outcome); !why.empty()) {
    row.text = "`cmake --version` " + why;
    row.why = last_line(outcome.err);
  } else if (!first.starts_with(kStart) || !two_numbers(first.substr(kStart.size()))) {
    row.text = "`cmake --version` prints no version";
  } else {
    const std::string version = first.substr(kStart.size());
    const bool good = *two_numbers(version) >= kOldestCMake;
    if (good) {
      row = {Verdict::kGood, row.check, row.subject, version, {}, {}};
    } else {
      row.text = fmt::format("{} is too old: a build needs {}.{} or newer", version,
                             kOldestCMake.first, kOldestCMake.second);
      row.help = "`python -m pip install --upgrade cmake`";
    }
  }
  return row;
}

CheckRow check_ninja(const std::string& python, Verdict missing, Context& context) {
  const Outcome outcome = ask_version("ninja", python, context);
  const std::vector<std::string> version = last_line(outcome.out);
  if (outcome.status == 0 && !version.empty()) {
    return {Verdict::kGood, "ninja", "ninja", version.front(), {}, {}};
  }
  CheckRow row{
      missing, "ninja", "ninja", "", last_line(outcome.err), "`python -m pip install ninja`"};
  row.text = outcome.status == -1 ? "found no `ninja`"
                                  : fmt::format("`ninja --version` {}", trouble(outcome));
  if (row.why.empty()) {
    row.why = {"building a backend needs it, unless CMAKE_GENERATOR names another generator"};
  }
  return row;
}

}  // namespace

std::vector<CheckRow> check_programs(const std::string& python, bool needed, Context& context) {
  const Verdict missing = needed ? Verdict::kBad : Verdict::kDoubtful;
  return {check_compiler(missing, context), check_cmake(python, missing, context),
          check_ninja(python, missing, context)};
}

}  // namespace backendgen
