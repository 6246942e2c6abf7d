// SPDX-License-Identifier: Apache-2.0
#include "torch/catalog.h"
#include "glue/check_operators.h"

#include "catch.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

constexpr const char* kList = R"(
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
- func: abs(Tensor self) -> Tensor
  dispatch:
    CPU: abs
- func: matmul(Tensor self, Tensor other) -> Tensor
- func: matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
- func: is_nonzero(Tensor self) -> bool
- func: odd(Quantizer q) -> Tensor
- func: norm(Tensor input, Tensor(a!) mean) -> Tensor
  dispatch:
    CPU: norm
  autogen: norm_functional, norm.out
- func: whole.vec(Tensor self) -> Tensor
  autogen: whole.vec_out
- func: heart.vec(Tensor self) -> Tensor
  autogen: heart.vec_out
  tags: core
)";

const TorchInstall kTorch{"/site/torch", "/site/list.yaml", {2, 13, 0}};

struct World {
  FakeDisk disk;
  Diagnostics problems;
  std::optional<Catalog> catalog;

  explicit World(std::string list = kList, TorchVersion version = {2, 13, 0}) {
    disk.files["/site/list.yaml"] = std::move(list);
    TorchInstall torch = kTorch;
    torch.version = version;
    catalog = read_catalog(torch, disk, problems);
  }
};

Kernel kernel(std::size_t line, std::string op, std::string function) {
  const std::size_t size = op.size();
  return {{std::move(op), {line, 1, size}}, {std::move(function), {line, size + 5, 3}}};
}

/// Every line of every problem with these kernels, in order.
std::vector<std::string> judged(const std::vector<Kernel>& kernels) {
  World world;
  REQUIRE(world.catalog);
  Description description;
  description.kernels = kernels;
  check_operators(description, *world.catalog, kTorch, world.problems);
  std::vector<std::string> lines;
  for (const Diagnostic& problem : world.problems.sorted()) {
    const char* kind = problem.severity == Severity::kError ? "error: " : "warning: ";
    lines.push_back(kind + problem.message);
    for (const std::string& help : problem.help) lines.push_back("help: " + help);
    for (const std::string& note : problem.notes) lines.push_back("note: " + note);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("operators are found by name", "[catalog]") {
  const World world;
  REQUIRE(world.catalog);
  const Operator* add = world.catalog->find("add.out");
  REQUIRE(add != nullptr);
  CHECK(add->structured);
  CHECK(!add->composite_implicit);
  CHECK(world.catalog->find("matmul")->composite_implicit);
  CHECK(!world.catalog->find("abs")->composite_implicit);
  CHECK(world.catalog->find("add") == nullptr);
  CHECK(world.catalog->find("") == nullptr);
  CHECK(world.catalog->overloads("add") == Lines{"add.Tensor", "add.out"});
}

TEST_CASE("operators that torchgen derives are there", "[catalog]") {
  const World world;
  REQUIRE(world.catalog);
  const Operator* functional = world.catalog->find("norm_functional");
  REQUIRE(functional != nullptr);
  CHECK(functional->derived);
  CHECK(functional->schema.text() ==
        "norm_functional(Tensor input, Tensor mean) -> (Tensor, Tensor mean_out)");
  CHECK(world.catalog->find("norm.out") != nullptr);
}

TEST_CASE("of wholly composite operators only core ones have derived variants", "[catalog]") {
  const World world;
  CHECK(world.catalog->find("whole.vec_out") == nullptr);
  CHECK(world.catalog->find("heart.vec_out") != nullptr);
  const World older(kList, {2, 5, 1});
  CHECK(older.catalog->find("heart.vec_out") == nullptr);
}

TEST_CASE("a catalog for a description has its operators, or all", "[catalog]") {
  FakeDisk disk;
  disk.files["/site/list.yaml"] = kList;
  const auto catalog_for = [&](const std::vector<std::string>& names) {
    Diagnostics problems;
    auto catalog = read_catalog_for(names, {}, kTorch, disk, problems);
    REQUIRE(catalog);
    CHECK(!problems.has_errors());
    return *catalog;
  };
  const Catalog some = catalog_for({"norm.out", "add_.Tensor"});
  CHECK(some.find("norm.out")->derived);
  CHECK(some.find("add.out") != nullptr);
  CHECK(some.find("abs") == nullptr);
  const Catalog all = catalog_for({"norm.out", "absx"});
  CHECK(all.operators().size() == World().catalog->operators().size());
  CHECK(catalog_for({}).operators().size() == all.operators().size());
}

TEST_CASE("a damaged list names its file and line", "[catalog]") {
  const World world("- func: add(Tensor self) -> Tensor\n- func: add(\n");
  CHECK(!world.catalog);
  REQUIRE(world.problems.error_count() == 1);
  const Diagnostic problem = world.problems.sorted().front();
  CHECK(problem.message == "the operator list of PyTorch is damaged: expected a type");
  CHECK(!problem.span.known());
  CHECK(problem.notes == Lines{"it is /site/list.yaml:2:13"});

  CHECK(World("- func: a() -> ()\n- func: a() -> ()\n").problems.sorted().front().message ==
        "the operator list of PyTorch is damaged: operator `a` is listed twice");
  CHECK(World("- func: a() -> ()\n  dispatch: {CPU: a}\n  autogen: a.out\n")
            .problems.sorted()
            .front()
            .message ==
        "the operator list of PyTorch is damaged: `autogen` names `a.out`, which does not follow "
        "from `a`");
}

TEST_CASE("an unreadable list is an error", "[catalog]") {
  FakeDisk disk;
  Diagnostics problems;
  CHECK(!read_catalog(kTorch, disk, problems));
  REQUIRE(problems.error_count() == 1);
  CHECK(problems.sorted().front().message ==
        "cannot read the operators of PyTorch: `/site/list.yaml`: No such file or directory");
}

TEST_CASE("unknown operators", "[catalog]") {
  const std::string overloads = "note: the overloads of `add` are `add.Tensor` and `add.out`";
  CHECK(judged({kernel(1, "add.Tesnor", "f")}) ==
        Lines{"error: no operator `aten::add.Tesnor` in PyTorch 2.13",
              "help: did you mean `add.Tensor`?", overloads});
  CHECK(judged({kernel(1, "add", "f")}) == Lines{"error: no operator `aten::add` in PyTorch 2.13",
                                                 "help: did you mean `add.out`?", overloads});
  CHECK(judged({kernel(1, "add_out", "f")}) ==
        Lines{"error: no operator `aten::add_out` in PyTorch 2.13", "help: did you mean `add.out`?",
              overloads});
  CHECK(judged({kernel(1, "aten::abs", "f")}) ==
        Lines{"error: `aten::abs` has a namespace", "help: did you mean `abs`?"});
  CHECK(judged({kernel(1, "aten::abz", "f")}) ==
        Lines{"error: no operator `aten::abz` in PyTorch 2.13", "help: did you mean `abs`?"});
  CHECK(judged({kernel(1, "prims::abs", "f")}) ==
        Lines{"error: `prims::abs` is not an operator of PyTorch",
              "note: kernels are for PyTorch's own operators, those of `aten`"});
  CHECK(judged({kernel(1, "frobnicate", "f")}) ==
        Lines{"error: no operator `aten::frobnicate` in PyTorch 2.13"});
}

TEST_CASE("every problem is reported, in file order", "[catalog]") {
  CHECK(judged({kernel(2, "frobnicate", "f"), kernel(1, "xyzzy", "f"), kernel(3, "abs", "f")}) ==
        Lines{"error: no operator `aten::xyzzy` in PyTorch 2.13",
              "error: no operator `aten::frobnicate` in PyTorch 2.13"});
}

TEST_CASE("an operator with a type of unknown C++ cannot have a kernel", "[catalog]") {
  CHECK(judged({kernel(1, "odd", "f")}) ==
        Lines{"error: `odd` cannot have a kernel: no C++ type is known for `Quantizer`",
              "note: its schema is `odd(Quantizer q) -> Tensor`"});
}

TEST_CASE("one function may serve operators that C++ can tell apart", "[catalog]") {
  CHECK(judged({kernel(1, "abs", "f"), kernel(2, "add.out", "f")}).empty());
  CHECK(judged({kernel(1, "abs", "foo::f"), kernel(2, "is_nonzero", "foo::f")}) ==
        Lines{"error: `foo::f` cannot serve `abs` and `is_nonzero`",
              "note: they have the same parameters, but return `at::Tensor` and `bool`"});
}

TEST_CASE("a kernel for an operator that autograd sees through is a warning", "[catalog]") {
  CHECK(judged({kernel(1, "matmul", "f")}) ==
        Lines{"warning: with a kernel, `matmul` has no gradient",
              "note: PyTorch makes it of other operators and differentiates those; a backend's own "
              "kernel replaces both"});
  CHECK(judged({kernel(1, "matmul.out", "f"), kernel(2, "is_nonzero", "g")}).empty());
}
