// SPDX-License-Identifier: Apache-2.0
#include "torch/native_functions.h"

#include "catch.h"

using namespace backendgen;

namespace {

/// "line:column: message" of the only problem.
std::string complaint(std::string text) {
  const Source source("list.yaml", std::move(text));
  Diagnostics problems;
  CHECK(!read_native_functions(source, problems));
  REQUIRE(problems.error_count() == 1);
  const Diagnostic problem = problems.sorted().front();
  return std::to_string(problem.span.line) + ":" + std::to_string(problem.span.column) + ": " +
         problem.message;
}

}  // namespace

TEST_CASE("entries of the operator list", "[native_functions]") {
  const Source source("list.yaml", R"(# comment
- func: add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck   # TensorIterator
  structured: True
  ufunc_inner_loop:
    Generic: add (AllAndComplex, BFloat16)
  dispatch:
    SparseCPU, SparseCUDA: add_out_sparse
  tags: [core, pointwise]
  autogen: add.x_out, add_functional

- func: silu(Tensor self) -> Tensor
  use_const_ref_for_mutable_tensors: True
  a_key_of_the_future: {deep: [1, {er: 2}]}
  dispatch:
    CompositeImplicitAutograd: math_silu
  tags: core
- func: relu(Tensor self) -> Tensor
  structured_delegate: relu.out
  structured: False
  tags:
    - pointwise
)");
  Diagnostics problems;
  const auto functions = read_native_functions(source, problems);
  REQUIRE(functions);
  CHECK(!problems.has_errors());
  REQUIRE(functions->size() == 3);
  const NativeFunction& add = functions->at(0);
  CHECK(add.func == "add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(add.span == Span{2, 9, 53});
  CHECK(add.structured);
  CHECK(add.has_dispatch);
  CHECK(!add.composite_implicit);
  CHECK(add.core);
  CHECK(add.on_cpu);
  CHECK(add.dispatch == "CPU, CUDA, SparseCPU, SparseCUDA");
  CHECK(add.autogen == std::vector<std::string>{"add.x_out", "add_functional"});
  const NativeFunction& silu = functions->at(1);
  CHECK(silu.const_ref_for_mutable);
  CHECK(silu.composite_implicit);
  CHECK(silu.core);
  const NativeFunction& relu = functions->at(2);
  CHECK(relu.structured);
  CHECK(!relu.has_dispatch);
  CHECK(!relu.core);
}

TEST_CASE("the entries of some roots keep their texts and the numbers of lines",
          "[native_functions]") {
  const std::string text =
      "# head\n- func: add_.out(Tensor self)\n  tags: core\n\n- func: sub(x)\n  y: z\n"
      "- {func: odd}\n- func: __iand__(x)\n  a: b";
  CHECK(entries_of(text, {"add"}) ==
        "# head\n- func: add_.out(Tensor self)\n  tags: core\n\n\n\n- {func: odd}\n\n\n");
  CHECK(entries_of(text, {"__and__"}) ==
        "# head\n\n\n\n\n\n- {func: odd}\n- func: __iand__(x)\n  a: b");
  CHECK(entries_of("", {"add"}).empty());
  // Entries that begin in another way are kept: who knows whose they are.
  for (const char* odd : {"-\n  func: sub(x)\n", "-\tfunc: sub(x)\n", "- func: 'sub(x)'\n",
                          "- func: sub\n    (x)\n", "- func: &a sub(x)\n"}) {
    CHECK(entries_of("- func: mul(x)\n" + std::string(odd), {"add"}) == "\n" + std::string(odd));
  }
  CHECK(entries_of("- func: add(", {}) == "\n");
}

TEST_CASE("a damaged operator list is an error with its place", "[native_functions]") {
  CHECK(complaint("") == "0:0: the list of operators is empty");
  CHECK(complaint("a: b\n") == "1:1: expected a list");
  CHECK(complaint("- just text\n") == "1:3: expected a table with the key `func`");
  CHECK(complaint("- tags: core\n") == "1:3: an entry has no `func`");
  CHECK(complaint("- func: [a]\n") == "1:9: `func` is no text");
  CHECK(complaint("- func: a\n  structured: maybe\n") ==
        "2:15: `structured` is neither `True` nor `False`");
  CHECK(complaint("- func: a\n  dispatch: CPU\n") == "2:13: `dispatch` is no table");
  CHECK(complaint("- func: a\n  autogen: {x: y}\n") == "2:12: `autogen` is no text");
  CHECK(complaint("- func: a\n  tags: [[x]]\n") == "2:10: `tags` is no text");
  CHECK(complaint("- func: a\n  ? [x]\n  : y\n") == "2:5: expected a key");
  CHECK(complaint("- func: a\n---\n- func: b\n") == "2:1: expected the end");
  CHECK(complaint("- func: \"a\n") == "2:1: not YAML: found unexpected end of stream");
  CHECK(complaint("- func: a\n\tb: c\n") ==
        "2:1: not YAML: found a tab character that violates indentation");
  CHECK(complaint("- func: a\n  b\n  c: d\n") == "3:3: not YAML: could not find expected ':'");
  CHECK(complaint("- func: \xff\n") == "1:9: not YAML: invalid leading UTF-8 octet");
  // Columns count bytes, and only "\n" ends a line.
  CHECK(complaint("# \xC2\x85\r\n- func: \xC3\xA9\n  tags: [[x]]\n") == "3:10: `tags` is no text");
  CHECK(complaint("- {func: \"\xC3\xA9\", tags: {}}\n") == "1:22: `tags` is no text");
}
