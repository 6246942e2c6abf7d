// SPDX-License-Identifier: Apache-2.0
#include "description/check_custom.h"
#include "glue/custom_model.h"

#include "catch.h"
#include "torch/parse_schema.h"

using namespace backendgen;

namespace {

Schema parsed(const std::string& text) {
  Diagnostics problems;
  const auto schema = parse_schema(text, {}, problems);
  REQUIRE(schema);
  return *schema;
}

std::string complaint(const std::string& text) {
  const auto good = judge_custom(parsed(text));
  return good ? "" : good.why();
}

ByName<std::string> row(const std::string& text) {
  Description description;
  CustomOperator custom;
  custom.text.value = "foo::" + text;
  custom.schema = parsed(text);
  custom.kernel.value = "foo::kernel";
  description.custom = {custom};
  Values values;
  add_custom_rows(description, custom_functions(description), values);
  REQUIRE(values.lists["custom"].size() == 1);
  return values.lists["custom"].front().texts;
}

}  // namespace

TEST_CASE("custom operators have types and names of both languages", "[custom]") {
  CHECK(complaint("f(Tensor x, int[] n=[1, 2], str s='a b', float f=-1e-6) -> (Tensor, int)")
            .empty());
  CHECK(complaint("f(Tensor(a!) x) -> ()").empty());
  CHECK(complaint("f(Storage x) -> Tensor") == "no Python type is known for `Storage`");
  CHECK(complaint("f(Tensor x) -> Quark") == "no Python type is known for `Quark`");
  CHECK(complaint("f(Tensor lambda) -> Tensor") == "argument `lambda` is a keyword of Python");
  CHECK(complaint("f(Tensor int) -> Tensor") == "argument `int` has a meaning in C++");
  CHECK(complaint("f(Tensor torch) -> Tensor") == "an argument cannot be called `torch`");
  CHECK(complaint("f(Tensor x, int x) -> Tensor") == "two arguments are called `x`");
  CHECK(complaint("f(Tensor x, int n=exit()) -> Tensor") == "the default of `n` is no literal");
  CHECK(complaint("f(Tensor x, str s=\"\\\"\") -> Tensor") == "the default of `s` is no literal");
  CHECK(complaint("f(Tensor x, int[] n=[1, x]) -> Tensor") == "the default of `n` is no literal");
  CHECK(complaint("f(Tensor x, float f=1-) -> Tensor") == "the default of `f` is no literal");
  CHECK(complaint("f(Tensor x, int n=1.5) -> Tensor") ==
        "`1.5` cannot be the default of `n`, a `int`");
  CHECK(complaint("f(int n) -> Tensor") ==
        "it has no tensor among its arguments, and PyTorch goes by their device");
  CHECK(complaint("f(Tensor x, int a=1, int b) -> Tensor") ==
        "`b` has no default, but the argument before it has one");
  CHECK(complaint("f.if(Tensor x) -> Tensor") == "`if` is a keyword of Python");
  CHECK(complaint("f.default(Tensor x) -> Tensor") == "an overload cannot be called `default`");
  CHECK(complaint("name(Tensor x) -> Tensor") == "an operator cannot be called `name`");
  CHECK(complaint("f(Tensor(a!)? x, Tensor y) -> ()") ==
        "`x` may be absent, so it cannot be written to");
  CHECK(complaint("f(Tensor x) -> Tensor(a!)") ==
        "its result is said to be an argument, but no argument is marked so");
  CHECK(complaint("f(Tensor x, int[][] n) -> Tensor") == "no C++ type is known for `int[][]`");
  CHECK(complaint("f(Tensor x) -> bool[]") == "no C++ type is known for `bool[]`");
}

TEST_CASE("custom operators in Python", "[custom]") {
  auto texts =
      row("f.out(Tensor? x, Scalar s=1, *, int[] n=[1, 2], ScalarType? t=None) -> Tensor[]");
  CHECK(texts["custom_name"] == "f_out");
  CHECK(texts["custom_packet"] == "f");
  CHECK(texts["custom_overload"] == "out");
  CHECK(texts["custom_parameters"] ==
        "x: Optional[torch.Tensor], s: Union[int, float, bool, complex] = 1, *, "
        "n: Sequence[int] = (1, 2), t: Optional[torch.dtype] = None");
  CHECK(texts["custom_arguments"] == "x, s, n=n, t=t");
  CHECK(texts["custom_result"] == "list[torch.Tensor]");
  texts = row("g(int[] n=[1]) -> ()");
  CHECK(texts["custom_parameters"] == "n: Sequence[int] = (1,)");
  CHECK(texts["custom_result"] == "None");
}

TEST_CASE("what custom operators are decides their lists", "[custom]") {
  Description description;
  CustomOperator custom;
  custom.text.value = "f_(Tensor(a!) x) -> ()";
  custom.schema = parsed(custom.text.value);
  custom.kernel.value = custom.cpu.value = "foo::kernel";
  custom.backward.value = "a.b:c";
  description.custom = {custom};
  Values values;
  add_custom_rows(description, custom_functions(description), values);
  CHECK(values.lists["custom_cpu"].size() == 1);
  CHECK(values.lists["custom_meta"].empty());
  CHECK(values.lists["custom_plain"].empty());
  CHECK(values.lists["custom_formulas"].size() == 1);
  CHECK(values.lists["custom_writes"].size() == 1);
  CHECK(values.texts["custom_declarations"] ==
        "namespace foo {\n\n// f_(Tensor(a!) x) -> ()\nvoid kernel(at::Tensor& x);\n\n}  // "
        "namespace foo\n");
}

TEST_CASE("an operator may return views of its arguments", "[custom]") {
  for (const char* text : {"f(Tensor(a) x) -> Tensor(a)", "f(Tensor(a -> *) x) -> Tensor(a)[]",
                           "f(Tensor(a) x, Tensor(b) y) -> (Tensor(b), Tensor(a), Tensor)",
                           "f(Tensor(a) x, Tensor(b!) y) -> Tensor(a)"}) {
    INFO(text);
    CHECK(complaint(text).empty());
    CHECK(parsed(text).views());
  }
  CHECK_FALSE(parsed("f(Tensor(a!) x) -> Tensor(a!)").views());
  CHECK_FALSE(parsed("f(Tensor(a) x) -> Tensor").views());
  for (const char* text : {"f(Tensor x) -> Tensor(a)", "f(Tensor(b) x) -> Tensor(a)",
                           "f(Tensor(a!) x) -> Tensor(a)"}) {
    INFO(text);
    CHECK(complaint(text) ==
          "its result shares memory with an argument, but no argument is marked so");
  }
}

TEST_CASE("a view has one kernel, which keeps sizes symbolic", "[custom]") {
  Description description;
  CustomOperator custom;
  custom.text.value = "f(Tensor(a) x, SymInt n) -> Tensor(a)";
  custom.schema = parsed(custom.text.value);
  custom.kernel.value = "foo::kernel";
  description.custom = {custom};
  Values values;
  add_custom_rows(description, custom_functions(description), values);
  CHECK(values.lists["custom_views"].size() == 1);
  CHECK(values.lists["custom"].size() == 1);
  for (const char* list : {"custom_kernels", "custom_cpu", "custom_meta", "custom_plain",
                           "custom_writes", "custom_fakes", "custom_formulas"}) {
    INFO(list);
    CHECK(values.lists[list].empty());
  }
  CHECK(values.texts["custom_declarations"] ==
        "namespace foo {\n\n// f(Tensor(a) x, SymInt n) -> Tensor(a)\n"
        "at::Tensor kernel(const at::Tensor& x, c10::SymInt n);\n\n}  // namespace foo\n");
}
