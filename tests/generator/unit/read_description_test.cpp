// SPDX-License-Identifier: Apache-2.0
#include "description/read.h"

#include <string>

#include <fmt/format.h>

#include "catch.h"

using namespace backendgen;

namespace {

const std::string kMinimal = "[backend]\nname = \"foo\"\nversion = \"0.1.0\"\n";

/// The problems of a description as "line message", one a line.
std::string problems_of(const std::string& text) {
  Diagnostics problems;
  const auto description = read_description(Source("backend.toml", text), problems);
  CHECK(description.has_value() == !problems.has_errors());
  std::string result;
  for (const Diagnostic& problem : problems.sorted()) {
    result += fmt::format("{} {}\n", problem.span.line, problem.message);
  }
  return result;
}

Description read(const std::string& text) {
  Diagnostics problems;
  const auto description = read_description(Source("backend.toml", text), problems);
  REQUIRE(description);
  return *description;
}

}  // namespace

TEST_CASE("a short description is filled in") {
  const Description description = read(kMinimal);
  CHECK(description.name.value == "foo");
  CHECK(description.name.span == Span{2, 8, 5});
  CHECK(description.package.value == "torch_foo");
  CHECK_FALSE(description.package.span.known());
  CHECK(description.summary.value == "PyTorch backend for foo devices");
  CHECK(description.runtime.value == "foo::Runtime");
  CHECK(description.header.value == "runtime.h");
  CHECK(description.torch_requires.value == ">=2.5");
  CHECK(description.layout == Layout::kPackage);
  CHECK(description.on_failure == OnFailure::kWarn);
  CHECK(description.fallback == Fallback::kCpu);
  CHECK(description.imports.empty());
  CHECK(description.kernels.empty());
  CHECK(description.amp_dtypes.empty());
  CHECK(description.entry_points.empty());
  CHECK(description.module() == "torch_foo");
}

TEST_CASE("every key is read, in file order") {
  const Description description = read(
      "[backend]\nname = 'foo'\npackage = 'foo_frameworks'\nversion = '1.0rc1'\nsummary = 'A "
      "\"b\"'\n"
      "runtime = 'a::B'\nheader = 'a/b.h'\n[torch]\nrequires = '>=2.6,<3.0'\n[autoload]\n"
      "layout = 'submodule'\non_failure = 'error'\nimports = ['foo_frameworks.b', "
      "'foo_frameworks.a']\n"
      "[operators]\nfallback = 'error'\nkernels.relu = 'r'\nkernels.'add.out' = 'a::add'\n"
      "[amp]\ndtypes = ['bfloat16', 'float16']\n[entry-points.torch.logs]\nz = 'm:z'\na = 'm:a'\n"
      "[entry-points]\n'plain.group' = { x = 'm' }\n");
  CHECK(description.summary.value == "A \"b\"");
  CHECK(description.runtime.value == "a::B");
  CHECK(description.header.value == "a/b.h");
  CHECK(description.torch_requires.value == ">=2.6,<3.0");
  CHECK(description.module() == "foo_frameworks.torch");
  CHECK(description.on_failure == OnFailure::kError);
  CHECK(description.fallback == Fallback::kError);
  REQUIRE(description.imports.size() == 2);
  CHECK(description.imports[0].value == "foo_frameworks.b");
  REQUIRE(description.kernels.size() == 2);
  CHECK(description.kernels[0].op.value == "relu");
  CHECK(description.kernels[1].op.value == "add.out");
  CHECK(description.kernels[1].function.value == "a::add");
  REQUIRE(description.amp_dtypes.size() == 2);
  CHECK(description.amp_dtypes[0].value == "bfloat16");
  REQUIRE(description.entry_points.size() == 2);
  CHECK(description.entry_points[0].name.value == "torch.logs");
  REQUIRE(description.entry_points[0].entries.size() == 2);
  CHECK(description.entry_points[0].entries[0].name.value == "z");
  CHECK(description.entry_points[0].entries[1].target.value == "m:a");
  CHECK(description.entry_points[1].name.value == "plain.group");
}

TEST_CASE("what is missing") {
  CHECK(problems_of("") == "0 backend.toml has no [backend] table\n");
  CHECK(problems_of("[backend]\n") == "1 [backend] has no `name`\n1 [backend] has no `version`\n");
  // Not said of a key that is there in a way: misspelt, of another type, or in a broken line.
  CHECK(problems_of("[backend]\nnmae = 'a'\nversion = '1'\n") ==
        "2 unknown key `nmae` in [backend]\n");
  CHECK(problems_of("[backend]\nname = 1\nversion = '1'\n") ==
        "2 `name` is an integer, expected a string\n");
  CHECK(problems_of("[backend]\nname = a\nversion = '1'\n") == "2 expected a value\n");
  CHECK(problems_of("[backend\nname = 'a'\n") == "1 expected `]` after the table's name\n");
}

TEST_CASE("all problems are found in one run, in file order") {
  CHECK(problems_of("zip = 1\n[backend]\nname = 'Foo'\nversion = 1\nruntime = 'x y'\n[autoload]\n"
                    "layout = 'pakage'\nimports = ['os', 1]\n[nope]\na = 1\n") ==
        "1 unknown key `zip` outside a table\n"
        "3 `Foo` cannot be a device name: it has a capital letter\n"
        "4 `version` is an integer, expected a string\n"
        "5 `x y` cannot be the runtime's C++ type: it has a blank\n"
        "7 unknown layout `pakage`\n"
        "8 an item of `imports` is an integer, expected a string\n"
        "9 unknown table `[nope]`\n");
}

TEST_CASE("a package is judged with its imports only when it is known") {
  CHECK(problems_of(kMinimal +
                    "[autoload]\nimports = ['torch_foo.a', 'torch_bar.a', 'torch_foo']\n") ==
        "5 `torch_bar.a` is not a module below `torch_foo`\n"
        "5 `torch_foo` is not a module below `torch_foo`\n");
}

TEST_CASE("kernels") {
  const std::string head = kMinimal + "[operators.kernels]\n";
  CHECK(problems_of(head + "add.out = 'a'\n") == "5 operator `add.out` needs quotes\n");
  CHECK(problems_of(head + "'aten::add' = 'a'\n") ==
        "5 `aten::add` cannot be an operator: it names a namespace, `aten::`\n");
  CHECK(problems_of(head + "add = 'a'\nsub = 'a'\n").empty());
  CHECK(problems_of(kMinimal + "[operators]\nkernels = ['a']\n") ==
        "5 `kernels` is a list, expected a table of operators and C++ functions\n");
}

TEST_CASE("a description with errors still gives its kernels") {
  Diagnostics problems;
  const Description description = read_partial_description(
      Source("a", "[backend]\nname = 1\n[operators.kernels]\na = 'f'\nb = 'g h'\n'c d' = 'e'\n"),
      problems);
  CHECK(problems.error_count() == 4);
  REQUIRE(description.kernels.size() == 2);
  CHECK(description.kernels[0].op.value == "a");
  CHECK(description.kernels[1].op.value == "b");
}

TEST_CASE("entry points") {
  const std::string head = kMinimal + "[entry-points";
  CHECK(problems_of(head + "]\na = 'b:c'\n") ==
        "5 `a` is a string, expected a table of entry points\n");
  CHECK(problems_of(head + ".a]\nb = 1\n") == "5 `b` is an integer, expected a string\n");
  CHECK(problems_of(head + ".torch.backends]\nb = 'c:d'\n") ==
        "4 `torch.backends` cannot be a group of entry points: backendgen writes that group "
        "itself\n");
  CHECK(problems_of(head + ".console_scripts]\nb = 'c'\n") == "5 `c` names no function\n");
  CHECK(problems_of(head + ".'a.b']\nx = 'y:z'\n[entry-points.a.b]\nx = 'y:q'\n") ==
        "7 `x` is given twice\n");
  CHECK(problems_of(head + ".a]\n").empty());
}
