// SPDX-License-Identifier: Apache-2.0
#include "torch/schema.h"

#include "catch.h"
#include "torch/parse_schema.h"

using namespace backendgen;

namespace {

Schema parsed(std::string_view text) {
  Diagnostics problems;
  auto schema = parse_schema(text, {1, 1, text.size()}, problems);
  INFO(text);
  REQUIRE(schema);
  REQUIRE(!problems.has_errors());
  return *schema;
}

/// The message and the column of what is wrong with a schema that stands at column 11 of line 7.
std::string complaint(std::string_view text) {
  Diagnostics problems;
  CHECK(!parse_schema(text, {7, 11, text.size()}, problems));
  REQUIRE(problems.error_count() == 1);
  const Diagnostic problem = problems.sorted().front();
  CHECK(problem.span.line == 7);
  CHECK(problem.span.length == 1);
  return std::to_string(problem.span.column - 11) + ": " + problem.message;
}

}  // namespace

TEST_CASE("a schema prints the text it was parsed from", "[schema]") {
  const char* texts[] = {
      "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
      "_has_same_storage_numel() -> ()",
      "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
      "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
      "gelu(Tensor self, *, str approximate='none') -> Tensor",
      "odd(str text=', it\\'s ) -> ') -> str",
      "pair(Tensor? weight=None, int[2]? size=None) -> (Tensor values, Tensor indices)",
      "index(Tensor self, Tensor?[] indices, bool[3] mask) -> (Tensor?, float[])",
      "foreach_(Tensor(a!)[] self, Tensor(b)? other) -> ()",
      "custom(__torch__.torch.classes.foo.Bar packed, Newtype[2]? x) -> Newtype",
      "__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
      "either(Tensor(a|b) self, Tensor(a! -> a|b) x) -> Tensor(a|b)",
  };
  for (const char* text : texts) CHECK(parsed(text).text() == text);
}

TEST_CASE("the parts of a schema", "[schema]") {
  const Schema schema = parsed(
      "foo.over_out(Tensor self, SymInt[2] size, *, float p=0.5, Tensor(a!) out0, Tensor(b!) out1) "
      "-> (Tensor(a!), Tensor(b!))");
  CHECK(schema.name().base == "foo");
  CHECK(schema.name().overload == "over_out");
  REQUIRE(schema.positional().size() == 2);
  CHECK(schema.positional()[1].type.text() == "SymInt[2]");
  CHECK(schema.positional()[1].type.atom == Atom::kSymInt);
  REQUIRE(schema.keyword_only().size() == 1);
  CHECK(schema.keyword_only()[0].value == "0.5");
  REQUIRE(schema.out().size() == 2);
  CHECK(schema.out()[1].text() == "Tensor(b!) out1");
  CHECK(schema.returns()[1].write());
  CHECK(schema.kind() == SchemaKind::kOut);
  CHECK(schema.has_symint());
}

TEST_CASE("unknown types are kept by name", "[schema]") {
  const Schema schema = parsed("foo(ConstQuantizerPtr quantizer) -> Tensor");
  CHECK(schema.positional()[0].type.atom == Atom::kOther);
  CHECK(schema.positional()[0].type.name == "ConstQuantizerPtr");
}

TEST_CASE("kinds of schemas", "[schema]") {
  CHECK(parsed("abs(Tensor self) -> Tensor").kind() == SchemaKind::kFunctional);
  CHECK(parsed("abs_(Tensor(a!) self) -> Tensor(a!)").kind() == SchemaKind::kInplace);
  CHECK(parsed("__ior__.Scalar(Tensor(a!) self, Scalar x) -> Tensor(a!)").kind() ==
        SchemaKind::kInplace);
  CHECK(parsed("__or__.Scalar(Tensor self, Scalar x) -> Tensor").kind() == SchemaKind::kFunctional);
  CHECK(parsed("norm(Tensor input, Tensor(a!) mean) -> Tensor").kind() == SchemaKind::kMutable);
}

TEST_CASE("what the variants of an operator share", "[schema]") {
  const auto root = [](const char* name) { return OperatorName::parse(name).root(); };
  CHECK(root("add.Tensor") == "add");
  CHECK(root("add_.Tensor") == "add");
  CHECK(root("__and__.Tensor") == "__and__");
  CHECK(root("__iand__.Tensor") == "__and__");
  CHECK(root("_native_batch_norm_legit_functional") == "_native_batch_norm_legit");
  CHECK(root("__ilike__") == "__ilike__");
  CHECK(root("_") == "_");
  CHECK(root("_functional") == "_functional");
}

TEST_CASE("tensor options are found as four in a row", "[schema]") {
  const char* options =
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None";
  const Schema empty = parsed(std::string("empty(SymInt[] size, *, Generator? g, ") + options +
                              ", MemoryFormat? memory_format=None) -> Tensor");
  CHECK(find_tensor_options(empty.arguments()) == 2);
  const Schema to =
      parsed("to(Tensor self, *, ScalarType? dtype=None, Device? device=None) -> Tensor");
  CHECK(!find_tensor_options(to.arguments()));
}

TEST_CASE("errors point into the schema", "[schema]") {
  CHECK(complaint("add") == "3: expected `(`");
  CHECK(complaint("(Tensor self) -> Tensor") == "0: expected the name of an operator");
  CHECK(complaint("2add(Tensor self) -> Tensor") == "0: expected the name of an operator");
  CHECK(complaint("add.(Tensor self) -> Tensor") == "4: expected the name of an overload");
  CHECK(complaint("a b(Tensor self) -> Tensor") == "1: expected `(`");
  CHECK(complaint("add(Tensor) -> Tensor") == "10: expected a space and the name of the argument");
  CHECK(complaint("add(Tensor 2) -> Tensor") == "12: expected the name of an argument");
  CHECK(complaint("add(Tensor self, ) -> Tensor") == "17: expected a type");
  CHECK(complaint("add(Tensor self,Tensor x) -> Tensor") == "16: expected a space after the comma");
  CHECK(complaint("add(Tensor self)") == "15: expected `) -> `");
  CHECK(complaint("add(Tensor self, int n = 1) -> Tensor") ==
        "22: expected `=` and a default right after the name");
  CHECK(complaint("add(*) -> Tensor") == "5: expected `, ` and a keyword-only argument");
  CHECK(complaint("add(Tensor(A!) x) -> Tensor") == "11: expected an alias: a letter");
  CHECK(complaint("add(Tensor(a! x) -> Tensor") == "13: expected `)`");
  CHECK(complaint("add(int[x] y) -> Tensor") == "8: expected `]`; a list of int is `int[]`");
  CHECK(complaint("add(int x=) -> Tensor") == "10: expected a default");
  CHECK(complaint("add(str x='y) -> Tensor") == "10: this quote has no end");
  CHECK(complaint("add(int x) -> ") == "14: expected a type");
  CHECK(complaint("add(int x) -> (Tensor)") ==
        "21: expected `, ` and another return; a single one stands without `()`");
  CHECK(complaint("add(int x) -> Tensor ") == "21: expected the name of a return");
  CHECK(complaint("add(int x) -> Tensor, int") == "20: expected the end of the schema");
  CHECK(complaint("") == "0: expected `(`");
}
