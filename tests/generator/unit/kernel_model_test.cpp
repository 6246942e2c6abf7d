// SPDX-License-Identifier: Apache-2.0
#include "glue/kernel_model.h"
#include "glue/check_operators.h"

#include "glue/kernel_rows.h"
#include "torch/native_functions.h"

#include "catch.h"

using namespace backendgen;

namespace {

const char* kList = R"(
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
  tags: [core, pointwise]
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  device_check: NoCheck
  dispatch:
    CPU: add
- func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  structured_delegate: max.dim_max
- func: max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)
  structured: True
  precomputed:
  - dim -> int dim, int size
  - int count
  dispatch:
    CPU: max
- func: logit(Tensor self, float? eps=None) -> Tensor
  dispatch:
    CPU: logit
- func: logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)
  dispatch:
    CPU: logit_
- func: logit.out(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: logit_out
- func: sub(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: sub
- func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CompositeExplicitAutograd: sub_out
- func: abs(Tensor self) -> Tensor
  dispatch:
    CPU: abs
- func: __and__.Tensor(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: and
- func: bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
  dispatch:
    CPU: bernoulli
- func: _foreach_zero_(Tensor(a!)[] self) -> ()
  dispatch:
    CPU: zero
- func: arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
  dispatch:
    CPU: arange
- func: arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: arange_out
- func: clone(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: clone
- func: transpose_(Tensor(a!) self) -> Tensor(a!)
  tags: inplace_view
  dispatch:
    CompositeExplicitAutograd: transpose_
- func: resize(Tensor self, int[] size) -> Tensor
  dispatch:
    Meta: resize
- func: resize_(Tensor(a!) self, int[] size) -> Tensor(a!)
  use_const_ref_for_mutable_tensors: True
  dispatch:
    CPU: resize_
- func: rrelu(Tensor self, Tensor noise) -> (Tensor, Tensor)
  dispatch:
    CPU: rrelu
- func: rrelu.out(Tensor self, Tensor(b!) noise, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: rrelu_out
- func: rrelu_(Tensor(a!) self, Tensor(b!) noise) -> Tensor(a!)
  dispatch:
    CPU: rrelu_
- func: alias(Tensor(a) self) -> Tensor(a)
  dispatch:
    CompositeExplicitAutograd: alias
)";

Catalog small_catalog() {
  Diagnostics problems;
  const auto functions = read_native_functions(Source("list.yaml", kList), problems);
  REQUIRE(functions);
  auto catalog = make_catalog(*functions, {2, 13, 0}, problems);
  REQUIRE(catalog);
  return *catalog;
}

const TorchInstall kTorch = {"", "", {2, 13, 0}};

Kernel kernel(std::string op, std::string function) {
  return {{std::move(op), {}}, {std::move(function), {}}};
}

std::vector<KernelModel> models(const std::vector<Kernel>& kernels) {
  Description description;
  description.kernels = kernels;
  Diagnostics problems;
  const auto signatures = check_operators(description, small_catalog(), kTorch, problems);
  REQUIRE(!problems.has_errors());
  return model_kernels(description, signatures, small_catalog());
}

}  // namespace

std::vector<std::string> registered(const KernelModel& model) {
  std::vector<std::string> names;
  for (const RegistrationModel& one : model.registrations) names.push_back(one.op);
  return names;
}

using Words = std::vector<std::string>;

TEST_CASE("a structured kernel answers all variants", "[kernel_model]") {
  const KernelModel model = models({kernel("add.out", "foo::math::add")}).front();
  CHECK(model.op == "add.out");
  CHECK(model.op_id == "add_out");
  CHECK(model.root == "add");
  CHECK(model.function_namespace == "foo::math");
  CHECK(model.function_name == "add");
  CHECK(model.signature ==
        "void (const at::Tensor&, const at::Tensor&, const at::Scalar&, const at::Tensor&)");
  CHECK(model.declaration ==
        "void add(\n    const at::Tensor& self,\n    const at::Tensor& other,"
        "\n    const at::Scalar& alpha,\n    const at::Tensor& out);");
  CHECK(model.names == "self, other, alpha, out");
  CHECK(model.meta_class == "add_Tensor");
  CHECK(model.meta_header == "ATen/ops/add_meta.h");
  CHECK(model.meta_arguments == "self, other, alpha");
  CHECK(model.call_arguments == "call.in(self), call.in(other), alpha, call.out(0)");
  CHECK(model.outputs == 1);
  CHECK(model.elementwise);
  CHECK_FALSE(model.one_device);
  CHECK_FALSE(model.has_precomputed);
  CHECK(registered(model) == Words{"add.out", "add.Tensor", "add_.Tensor"});
  CHECK(model.registrations[2].kernel ==
        "backendkit::Structured<\"add_.Tensor\", backendkit::Variant::kInPlace, add_out_kernel, "
        "backendkit::DeviceOf<0, 1>, at::Tensor& (at::Tensor&, const at::Tensor&, "
        "const at::Scalar&)>");
}

TEST_CASE("a structured kernel gets what its meta function works out", "[kernel_model]") {
  const KernelModel model = models({kernel("max.dim_max", "foo::max")}).front();
  CHECK(model.has_precomputed);
  CHECK(model.signature ==
        "void (const at::Tensor&, int64_t, int64_t, bool, int64_t, const at::Tensor&, "
        "const at::Tensor&)");
  CHECK(model.meta_arguments == "self, dim, keepdim");
  CHECK(model.call_arguments ==
        "call.in(self), precomputed.dim, precomputed.size, keepdim, precomputed.count, "
        "call.out(0), call.out(1)");
  CHECK_FALSE(model.elementwise);
  CHECK(model.one_device);
}

TEST_CASE("variants follow from a functional kernel unless PyTorch has them", "[kernel_model]") {
  const KernelModel logit = models({kernel("logit", "foo::logit")}).front();
  CHECK(registered(logit) == Words{"logit", "logit_", "logit.out"});
  CHECK(logit.registrations[0].kernel ==
        "backendkit::Unstructured<\"logit\", logit_kernel, backendkit::DeviceOf<0>, "
        "at::Tensor (const at::Tensor&, std::optional<double>), &foo::logit>");
  CHECK(logit.registrations[2].kernel ==
        "backendkit::OutOfFunctional<\"logit.out\", logit_kernel, backendkit::DeviceOf<0, 2>, "
        "at::Tensor& (const at::Tensor&, std::optional<double>, at::Tensor&), "
        "static_cast<at::Tensor (*)(const at::Tensor&, std::optional<double>)>(&foo::logit)>");
  CHECK(registered(models({kernel("sub", "f")}).front()) == Words{"sub"});
  CHECK(registered(models({kernel("logit.out", "f")}).front()) == Words{"logit.out", "logit_"});
  CHECK(registered(models({kernel("logit_", "f")}).front()) == Words{"logit_"});
  // A line of its own comes first.
  const auto both = models({kernel("logit", "f"), kernel("logit_", "g")});
  CHECK(registered(both[0]) == Words{"logit", "logit.out"});
  CHECK(registered(both[1]) == Words{"logit_"});
  // A variant follows from one of two kernels.
  const auto structured = models({kernel("add.Tensor", "f"), kernel("add.out", "g")});
  CHECK(registered(structured[0]) == Words{"add.Tensor"});
  CHECK(registered(structured[1]) == Words{"add.out", "add_.Tensor"});
  const auto plain = models({kernel("logit.out", "f"), kernel("logit", "g")});
  CHECK(registered(plain[0]) == Words{"logit.out"});
  CHECK(registered(plain[1]) == Words{"logit", "logit_"});
}

TEST_CASE("nothing follows that writes to more than the results, or resizes", "[kernel_model]") {
  CHECK(registered(models({kernel("rrelu", "f")}).front()) == Words{"rrelu"});
  CHECK(registered(models({kernel("rrelu.out", "f")}).front()) == Words{"rrelu.out"});
  CHECK(registered(models({kernel("resize", "f")}).front()) == Words{"resize"});
}

TEST_CASE("a kernel's dtypes and inputs are those of the description", "[kernel_model]") {
  Kernel one = kernel("abs", "f");
  CHECK(models({one}).front().dtypes.empty());
  one.dtypes = {{"float32", {}}, {"bool", {}}};
  one.inputs = Inputs::kDense;
  one.unsupported = Unsupported::kError;
  const KernelModel model = models({one}).front();
  CHECK(model.dtypes == "backendkit::Dtypes{at::ScalarType::Float, at::ScalarType::Bool}");
  CHECK(model.dense);
  CHECK(model.error);
  CHECK(kernel_structs({&model}) ==
        "struct abs_kernel : backendkit::KernelTraits {"
        "\n  static constexpr const char* kArguments = \"self\";"
        "\n  static constexpr auto kInputs = backendkit::Inputs::kDense;"
        "\n  static constexpr auto kDtypes = backendkit::Dtypes{at::ScalarType::Float, "
        "at::ScalarType::Bool};"
        "\n  static constexpr auto kUnsupported = backendkit::Unsupported::kError;\n};");
  // Tensors of a list that is written to are the caller's own.
  Kernel list = kernel("_foreach_zero_", "g");
  list.inputs = Inputs::kDense;
  CHECK_FALSE(models({list}).front().dense);
}

TEST_CASE("names of operators become identifiers", "[kernel_model]") {
  CHECK(models({kernel("__and__.Tensor", "f")}).front().op_id == "__and___Tensor");
  const KernelModel abs = models({kernel("abs", "f")}).front();
  CHECK(abs.op_id == "abs");
  CHECK(abs.function_namespace.empty());
  CHECK(abs.function_name == "f");
}

TEST_CASE("a wrong operator has no signature", "[kernel_model]") {
  Description description;
  description.kernels = {kernel("abs", "f"), kernel("sba", "f")};
  Diagnostics problems;
  const auto signatures = check_operators(description, small_catalog(), kTorch, problems);
  CHECK(signatures.front());
  CHECK(!signatures.back());
  CHECK(problems.error_count() == 1);
}

TEST_CASE("an operator with tensor options does not answer its out= variant", "[kernel_model]") {
  CHECK(registered(models({kernel("arange", "f")}).front()) == Words{"arange"});
}

TEST_CASE("what makes tensors dense, and views, cannot have dense inputs", "[kernel_model]") {
  const auto problems_of = [](const char* op, Inputs inputs) {
    Description description;
    description.kernels = {kernel(op, "foo::f")};
    description.kernels.front().inputs = inputs;
    Diagnostics problems;
    check_operators(description, small_catalog(), kTorch, problems);
    std::vector<std::string> texts;
    for (const Diagnostic& one : problems.sorted()) {
      texts.push_back(one.message);
      texts.insert(texts.end(), one.help.begin(), one.help.end());
    }
    return texts;
  };
  CHECK(problems_of("clone", Inputs::kStrided).empty());
  CHECK(problems_of("alias", Inputs::kStrided).empty());
  CHECK(problems_of("logit_", Inputs::kDense).empty());
  CHECK(problems_of("clone", Inputs::kDense) ==
        Words{"`clone` cannot have dense inputs: tensors are made dense by it",
              "write `\"clone\" = { function = \"foo::f\", inputs = \"strided\" }`"});
  CHECK(problems_of("transpose_", Inputs::kDense).front() ==
        "`transpose_` cannot have dense inputs: it changes the tensor that the caller has, not a "
        "copy");
  CHECK(problems_of("alias", Inputs::kDense).front() ==
        "`alias` cannot have dense inputs: its result is a view of what the caller has, not of a "
        "copy");
}

TEST_CASE("functions are declared once, by namespace", "[kernel_model]") {
  const std::string unary =
      "// abs(Tensor self) -> Tensor\nat::Tensor unary(const at::Tensor& self);\n";
  CHECK(declarations({}).empty());
  CHECK(declarations(all_of(models({kernel("abs", "unary")}))) == unary);
  CHECK(declarations(all_of(models({kernel("abs", "foo::unary")}))) ==
        "namespace foo {\n\n" + unary + "\n}  // namespace foo\n");
  const std::string several = declarations(all_of(models(
      {kernel("add.out", "foo::binary"), kernel("abs", "unary"), kernel("sub", "foo::binary"),
       kernel("__and__.Tensor", "foo::both"), kernel("logit.out", "bar::binary")})));
  const std::vector<std::string_view> order = {"at::Tensor unary(",
                                               "namespace bar {\n\n// logit.out",
                                               "}  // namespace bar\n\nnamespace foo {\n\n// ",
                                               "at::Tensor binary(",
                                               "void binary(\n",
                                               "at::Tensor both(",
                                               "\n}  // namespace foo\n"};
  std::size_t at = 0;
  for (const std::string_view part : order) {
    INFO(part << "\nin\n" << several);
    at = several.find(part, at);
    REQUIRE(at != several.npos);
    at += part.size();
  }
  CHECK(at == several.size());
}

TEST_CASE("functions are declared shortly, once", "[kernel_model]") {
  CHECK(short_declarations({}).empty());
  CHECK(short_declarations(all_of(models({kernel("abs", "unary")}))) ==
        "at::Tensor unary(const at::Tensor&);");
  CHECK(short_declarations(all_of(models({kernel("sub", "a::f"), kernel("abs", "a::b::f"),
                                          kernel("__and__.Tensor", "a::f")}))) ==
        "namespace a { at::Tensor f(const at::Tensor&, const at::Tensor&); }\n"
        "namespace a::b { at::Tensor f(const at::Tensor&); }");
}

TEST_CASE("one function may serve several operators", "[kernel_model]") {
  CHECK(declarations(all_of(models({kernel("sub", "f"), kernel("__and__.Tensor", "f")}))) ==
        "// sub(Tensor self, Tensor other) -> Tensor\n"
        "// __and__.Tensor(Tensor self, Tensor other) -> Tensor\n"
        "at::Tensor f(const at::Tensor& self, const at::Tensor& other);\n");
}

TEST_CASE("long declarations have a parameter a line", "[kernel_model]") {
  const std::string text = declarations(all_of(models({kernel("add.out", "foo::add")})));
  CHECK(text.find("\nvoid add("
                  "\n    const at::Tensor& self,\n    const at::Tensor& other,"
                  "\n    const at::Scalar& alpha,\n    const at::Tensor& out);\n") != text.npos);
  const Signature signature{"void", {{"int64_t", "a"}, {"double", "b"}}};
  const std::string line = "void f(int64_t a, double b)";
  CHECK(signature.head("f", 100 - line.size()) == line);
  CHECK(signature.head("f", 101 - line.size()) == "void f(\n    int64_t a,\n    double b)");
}

TEST_CASE("kernels are spread over files by their names", "[kernel_model]") {
  KernelModel model;
  std::vector<KernelModel> kernels(150, model);
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].root = std::to_string(i);
  CHECK(shards({}).empty());
  CHECK(shards({&model}).size() == 1);
  const auto files = shards(all_of(kernels));
  CHECK(files.size() == 4);
  kernels.insert(kernels.begin(), model);
  kernels.front().root = "new";
  const auto more = shards(all_of(kernels));
  REQUIRE(more.size() == files.size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < files.size(); ++i) changed += more[i].size() != files[i].size();
  CHECK(changed == 1);
}

TEST_CASE("headers are those of all kernels, once each", "[kernel_model]") {
  const auto rows = header_rows(all_of(models({kernel("abs", "f"), kernel("bernoulli", "g")})));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].texts.at("header") == "ATen/core/Generator.h");
  CHECK(rows[1].texts.at("header") == "ATen/core/Tensor.h");
}
