// SPDX-License-Identifier: Apache-2.0
#include "torch/derive.h"

#include "catch.h"
#include "torch/parse_schema.h"

using namespace backendgen;

namespace {

Schema parsed(std::string_view text) {
  Diagnostics problems;
  auto schema = parse_schema(text, {}, problems);
  REQUIRE(schema);
  return *schema;
}

std::string out_of(std::string_view text) {
  const auto derived = derive_out(parsed(text));
  return derived ? derived->text() : "nothing";
}

std::string functional_of(std::string_view text) {
  const auto derived = derive_functional(parsed(text));
  return derived ? derived->text() : "nothing";
}

}  // namespace

TEST_CASE("variants of one operator have the same key", "[derive]") {
  const std::string key = group_key(parsed("add.Tensor(Tensor self, Tensor x) -> Tensor"));
  CHECK(group_key(parsed("add_.Tensor(Tensor(a!) self, Tensor x) -> Tensor(a!)")) == key);
  CHECK(group_key(parsed("add.out(Tensor self, Tensor x, *, Tensor(a!) out) -> Tensor(a!)")) ==
        key);
  CHECK(group_key(parsed("add.Scalar(Tensor self, Scalar x) -> Tensor")) != key);
  CHECK(group_key(parsed("add.Tensor(Tensor self, Tensor x=None) -> Tensor")) != key);
}

TEST_CASE("out= variants", "[derive]") {
  CHECK(out_of("foo(Tensor self) -> Tensor") ==
        "foo.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(out_of("foo.dim(Tensor(a) self, *, int x=1) -> (Tensor values, Tensor indices)") ==
        "foo.dim_out(Tensor self, *, int x=1, Tensor(b!) out0, Tensor(c!) out1) -> "
        "(Tensor(b!), Tensor(c!))");
  CHECK(out_of("foo_.s(Tensor(a!) self, Scalar s) -> Tensor(a!)") ==
        "foo.s_out(Tensor self, Scalar s, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(out_of("_foreach_(Tensor(a!)[] self) -> ()") ==
        "_foreach.out(Tensor[] self, *, Tensor(a!)[] out) -> ()");
  CHECK(out_of("empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? f=None) -> Tensor") ==
        "empty.out(int[] size, *, MemoryFormat? f=None, Tensor(a!) out) -> Tensor(a!)");
  CHECK(out_of("norm(Tensor x, Tensor(a!) mean) -> Tensor") ==
        "norm.out(Tensor x, Tensor(a!) mean, *, Tensor(b!) out) -> Tensor(b!)");
  CHECK(out_of("mixed(Tensor x) -> (Tensor, int)") ==
        "mixed.out(Tensor x, *, Tensor(a!) out0) -> int");
  CHECK(out_of("lists(Tensor x) -> Tensor[]") == "lists.out(Tensor x, *, Tensor(a!)[] out) -> ()");
  CHECK(out_of("number(Tensor x) -> int") == "nothing");
  CHECK(out_of("foo.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)") == "nothing");
}

TEST_CASE("functional variants", "[derive]") {
  CHECK(functional_of("foo_.s(Tensor(a!) self, Scalar s) -> Tensor(a!)") ==
        "foo.s(Tensor self, Scalar s) -> Tensor");
  CHECK(functional_of("_foreach_(Tensor(a!)[] self) -> ()") ==
        "_foreach(Tensor[] self) -> Tensor[] self_out");
  CHECK(functional_of("norm(Tensor x, Tensor(a!) mean) -> Tensor") ==
        "norm_functional(Tensor x, Tensor mean) -> (Tensor, Tensor mean_out)");
  CHECK(functional_of("bernoulli.p(Tensor(a!) x, float p) -> ()") ==
        "bernoulli_functional.p(Tensor x, float p=0.5) -> Tensor x_out");
  CHECK(functional_of("foo(Tensor self) -> Tensor") == "nothing");
}
