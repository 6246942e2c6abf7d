// SPDX-License-Identifier: Apache-2.0
#include "kernel_model.h"

#include "catch.h"

using namespace backendgen;

namespace {

Catalog small_catalog() {
  Diagnostics problems;
  const char* texts[] = {
      "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
      "sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
      "abs(Tensor self) -> Tensor",
      "__and__.Tensor(Tensor self, Tensor other) -> Tensor",
      "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
  };
  std::vector<NativeFunction> functions;
  for (const char* text : texts) {
    NativeFunction& function = functions.emplace_back();
    function.func = text;
    function.has_dispatch = true;
  }
  auto catalog = make_catalog(functions, {2, 13, 0}, problems);
  REQUIRE(catalog);
  return *catalog;
}

Kernel kernel(std::string op, std::string function) {
  return {{std::move(op), {}}, {std::move(function), {}}};
}

std::vector<KernelModel> models(const std::vector<Kernel>& kernels) {
  Description description;
  description.kernels = kernels;
  Diagnostics problems;
  auto models = model_kernels(description, small_catalog(), {"", "", {2, 13, 0}}, problems);
  REQUIRE(models);
  return *models;
}

}  // namespace

TEST_CASE("a kernel as templates see it", "[kernel_model]") {
  const KernelModel model = models({kernel("add.out", "foo::math::add")}).front();
  CHECK(model.values() ==
        std::map<std::string, std::string>{
            {"op", "add.out"},
            {"op_id", "add_out"},
            {"function", "foo::math::add"},
            {"function_namespace", "foo::math"},
            {"function_name", "add"},
            {"schema",
             "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"},
            {"signature",
             "at::Tensor& (const at::Tensor&, const at::Tensor&, const at::Scalar&, at::Tensor&)"},
            {"return_type", "at::Tensor&"},
            {"parameters",
             "const at::Tensor& self, const at::Tensor& other, "
             "const at::Scalar& alpha, at::Tensor& out"},
            {"arguments", "self, other, alpha, out"},
            {"guard", "0, 3, 1"},
        });
}

TEST_CASE("names of operators become identifiers", "[kernel_model]") {
  CHECK(models({kernel("__and__.Tensor", "f")}).front().op_id == "__and___Tensor");
  const KernelModel abs = models({kernel("abs", "f")}).front();
  CHECK(abs.op_id == "abs");
  CHECK(abs.function_namespace.empty());
  CHECK(abs.function_name == "f");
}

TEST_CASE("a wrong operator has no model", "[kernel_model]") {
  Description description;
  description.kernels = {kernel("abs", "f"), kernel("sba", "f")};
  Diagnostics problems;
  CHECK(!model_kernels(description, small_catalog(), {"", "", {2, 13, 0}}, problems));
  CHECK(problems.error_count() == 1);
}

TEST_CASE("functions are declared once, by namespace", "[kernel_model]") {
  const Rows rows = declaration_rows(
      models({kernel("add.out", "foo::binary"), kernel("abs", "unary"),
              kernel("sub.out", "foo::binary"), kernel("__and__.Tensor", "foo::both")}));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("function_name") == "unary");
  CHECK(rows[0].at("opens").empty());
  CHECK(rows[0].at("closes").empty());
  CHECK(rows[1].at("function_name") == "binary");
  CHECK(rows[1].at("opens") == "namespace foo {\n\n");
  CHECK(rows[1].at("closes").empty());
  CHECK(rows[1].at("schemas") ==
        "// add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)\n"
        "// sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
  CHECK(rows[1].at("parameters") ==
        "\n    const at::Tensor& self,\n    const at::Tensor& other,"
        "\n    const at::Scalar& alpha,\n    at::Tensor& out");
  CHECK(rows[0].at("parameters") == "const at::Tensor& self");
  CHECK(rows[2].at("function_name") == "both");
  CHECK(rows[2].at("opens").empty());
  CHECK(rows[2].at("closes") == "\n}  // namespace foo\n");
}

TEST_CASE("headers are those of all kernels, once each", "[kernel_model]") {
  const Rows rows = header_rows(models({kernel("abs", "f"), kernel("bernoulli", "g")}));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("header") == "ATen/core/Generator.h");
  CHECK(rows[1].at("header") == "ATen/core/Tensor.h");
}
