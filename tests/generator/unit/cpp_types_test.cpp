// SPDX-License-Identifier: Apache-2.0
#include "torch/cpp_types.h"

#include "catch.h"
#include "torch/parse_schema.h"

using namespace backendgen;

namespace {

Operator op_of(std::string_view text) {
  Diagnostics problems;
  auto schema = parse_schema(text, {}, problems);
  REQUIRE(schema);
  return Operator{std::move(*schema)};
}

std::string cpp(const Operator& op, SymInts symints = SymInts::kNumbers) {
  const auto signature = cpp_signature(op, symints);
  return signature ? signature->type() : signature.why();
}

}  // namespace

TEST_CASE("types of arguments", "[cpp_types]") {
  CHECK(cpp(op_of("f(Tensor a, Tensor? b, Tensor[] c, Tensor?[] d) -> ()")) ==
        "void (const at::Tensor&, const std::optional<at::Tensor>&, at::TensorList, "
        "const c10::List<std::optional<at::Tensor>>&)");
  CHECK(cpp(op_of("f(Scalar a, Scalar? b, Scalar[] c) -> ()")) ==
        "void (const at::Scalar&, const std::optional<at::Scalar>&, at::ArrayRef<at::Scalar>)");
  CHECK(cpp(op_of("f(int a, int? b, int[] c, int[2] d, int[1]? e) -> ()")) ==
        "void (int64_t, std::optional<int64_t>, at::IntArrayRef, at::IntArrayRef, "
        "at::OptionalIntArrayRef)");
  CHECK(cpp(op_of("f(float a, float[] b, float[]? c, bool d, bool[3] e, str f, str? g) -> ()")) ==
        "void (double, at::ArrayRef<double>, std::optional<at::ArrayRef<double>>, bool, "
        "std::array<bool, 3>, c10::string_view, std::optional<c10::string_view>)");
  CHECK(cpp(op_of("f(Generator? a, Stream b, Storage c, Dimname d, Dimname[] e, Dimname[]? f) "
                  "-> ()")) ==
        "void (std::optional<at::Generator>, at::Stream, at::Storage, at::Dimname, "
        "at::DimnameList, std::optional<at::DimnameList>)");
}

TEST_CASE("symbolic integers are numbers for kernels, except in results", "[cpp_types]") {
  const Operator op = op_of("f(SymInt a, SymInt? b, SymInt[] c, SymInt[]? d) -> SymInt");
  CHECK(cpp(op) ==
        "c10::SymInt (int64_t, std::optional<int64_t>, at::IntArrayRef, at::OptionalIntArrayRef)");
  CHECK(cpp(op, SymInts::kSymbolic) ==
        "c10::SymInt (c10::SymInt, std::optional<c10::SymInt>, c10::SymIntArrayRef, "
        "at::OptionalSymIntArrayRef)");
}

TEST_CASE("types of results", "[cpp_types]") {
  CHECK(cpp(op_of("f() -> Tensor")) == "at::Tensor ()");
  CHECK(cpp(op_of("f(Tensor(a!) self) -> Tensor(a!)")) == "at::Tensor& (at::Tensor&)");
  CHECK(cpp(op_of("f() -> (Tensor, Tensor[], Scalar, int)")) ==
        "std::tuple<at::Tensor, std::vector<at::Tensor>, at::Scalar, int64_t> ()");
  CHECK(cpp(op_of("f() -> Tensor?")) == "std::optional<at::Tensor> ()");
}

TEST_CASE("what an entry says changes types", "[cpp_types]") {
  Operator structured = op_of("f(Tensor[] tensors) -> Tensor");
  structured.structured = true;
  CHECK(cpp(structured) == "at::Tensor (const at::ITensorListRef&)");
  Operator constant = op_of("f_(Tensor(a!) self) -> Tensor(a!)");
  constant.const_ref_for_mutable = true;
  CHECK(cpp(constant) == "const at::Tensor& (const at::Tensor&)");
}

TEST_CASE("types without a C++ counterpart are named", "[cpp_types]") {
  CHECK(cpp(op_of("f(Quantizer? q) -> Tensor")) == "no C++ type is known for `Quantizer?`");
  CHECK(cpp(op_of("f(bool[] b) -> Tensor")) == "no C++ type is known for `bool[]`");
  CHECK(cpp(op_of("f() -> Scalar?")) == "no C++ type is known for `Scalar?`");
  CHECK(cpp(op_of("f() -> Tensor[2]")) == "no C++ type is known for `Tensor[2]`");
}

TEST_CASE("the argument that tells the device", "[cpp_types]") {
  using Order = std::vector<std::size_t>;
  const auto order = [](std::string_view text) { return device_order(op_of(text).schema); };
  CHECK(order("add.out(Tensor self, Tensor x, *, Scalar s, Tensor(a!) out) -> Tensor(a!)") ==
        Order{0, 3, 1});
  CHECK(order("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor") ==
        Order{1, 0, 2});
  CHECK(order("cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)") ==
        Order{2, 0});
  CHECK(order("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None) -> Tensor") == Order{3, 0});
  CHECK(order("number(int x) -> int").empty());
}

TEST_CASE("headers of what a signature names", "[cpp_types]") {
  const auto headers = [](std::string_view text) {
    return cpp_headers(*cpp_signature(op_of(text), SymInts::kNumbers));
  };
  using Headers = std::vector<std::string_view>;
  CHECK(headers("f(Tensor a) -> Tensor") == Headers{"ATen/core/Tensor.h"});
  CHECK(headers("f(Generator? g) -> (Tensor, Tensor)") ==
        Headers{"ATen/core/Generator.h", "ATen/core/Tensor.h", "tuple"});
}
