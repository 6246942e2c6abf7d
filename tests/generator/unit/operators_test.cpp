// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/glob.h"
#include "catch.h"
#include "glue/kernel_stub.h"
#include "ops/builtin.h"
#include "ops/changes.h"
#include "ops/groups.h"
#include "ops/listing.h"
#include "ops/page.h"
#include "ops/search.h"
#include "ops/states.h"

using namespace backendgen;

namespace {

constexpr const char* kList = R"(
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
  tags: [core, pointwise]
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  ufunc_inner_loop:
    Generic: add (All)
  dispatch:
    SparseCPU: add_out_sparse_cpu
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  dispatch:
    CompositeExplicitAutograd: add
- func: empty.memory_format(SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor
  dispatch:
    CPU: empty_cpu
- func: _indices(Tensor(a) self) -> Tensor(a)
  dispatch:
    SparseCPU, SparseCUDA: indices_sparse
- func: _nested_tensor_size(Tensor self) -> Tensor
  dispatch:
    NestedTensorCPU: _nested_tensor_size
  autogen: _nested_tensor_size.out
- func: cudnn_convolution(Tensor self) -> Tensor
  dispatch:
    CUDA, MPS: cudnn_convolution
- func: conv2d(Tensor input) -> Tensor
- func: convolution_overrideable(Tensor input) -> Tensor
  dispatch:
    CompositeExplicitAutograd: convolution_overrideable
- func: mse_loss(Tensor self) -> Tensor
  structured_delegate: mse_loss.out
- func: mse_loss.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: mse_loss_out
- func: twist(Tensor self, str how="<b>&'") -> Tensor
  dispatch:
    CPU: twist
)";

Catalog catalog_of(const std::string& list, Diagnostics& problems) {
  const Source source("list.yaml", list);
  const auto functions = read_native_functions(source, problems);
  REQUIRE(functions);
  auto catalog = make_catalog(*functions, {2, 13, 0}, problems);
  REQUIRE(catalog);
  return std::move(*catalog);
}

Catalog sample() {
  Diagnostics problems;
  return catalog_of(kList, problems);
}

Description described(const std::vector<std::pair<std::string, std::string>>& kernels,
                      Fallback fallback = Fallback::kCpu) {
  Description description;
  description.name.value = "kite";
  description.fallback = fallback;
  for (const auto& [op, function] : kernels)
    description.kernels.push_back({{op, {}}, {function, {}}});
  return description;
}

/// "state reason" of an operator.
std::string state_of(const Catalog& catalog, const Description* description,
                     const std::string& name) {
  for (const OperatorStatus& status : judge_operators(catalog, description)) {
    if (status.op->schema.name().text() != name) continue;
    const std::string reason = status.reason();
    return std::string(state_name(status.state)) + (reason.empty() ? "" : " " + reason);
  }
  return "";
}

std::vector<std::string> found(const Catalog& catalog, const std::string& pattern) {
  std::vector<std::string> names;
  for (const OperatorStatus& status : find_operators(judge_operators(catalog, nullptr), pattern)) {
    names.push_back(status.op->schema.name().text());
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("wildcards", "[glob]") {
  CHECK(matches("", ""));
  CHECK(!matches("", "a"));
  CHECK(matches("*", ""));
  CHECK(matches("*", "add"));
  CHECK(matches("a*d", "ad"));
  CHECK(matches("a*d", "abcd"));
  CHECK(!matches("a*d", "abc"));
  CHECK(matches("*norm*", "native_layer_norm_backward"));
  CHECK(matches("*a*b*", "xxaxxbxx"));
  CHECK(!matches("*a*b*", "xxbxxaxx"));
  CHECK(matches("a?c", "abc"));
  CHECK(!matches("a?c", "ac"));
  CHECK(!matches("a", "ab"));
  CHECK(!matches("ab", "a"));
  CHECK(matches("*.out", "add.out"));
  CHECK(!matches("*.out", "addxout"));
  CHECK(matches("**a**", "a"));
  CHECK(has_wildcard("a?"));
  CHECK(!has_wildcard("a.b"));
  // A pattern with many wildcards takes no more than product time.
  CHECK(!matches("*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST_CASE("states of operators", "[ops]") {
  const Catalog catalog = sample();
  CHECK(state_of(catalog, nullptr, "add.out") == "fallback");
  CHECK(state_of(catalog, nullptr, "add.Tensor") == "free from add.out");
  CHECK(state_of(catalog, nullptr, "add.Scalar") == "free composite");
  CHECK(state_of(catalog, nullptr, "conv2d") == "free composite");
  CHECK(state_of(catalog, nullptr, "empty.memory_format") == "built-in");
  CHECK(state_of(catalog, nullptr, "_indices") == "fallback");
  CHECK(state_of(catalog, nullptr, "convolution_overrideable") == "fallback by BackendKit");
  CHECK(state_of(catalog, nullptr, "mse_loss") == "fallback by BackendKit");
  CHECK(state_of(catalog, nullptr, "_nested_tensor_size") == "cannot only for NestedTensorCPU");
  CHECK(state_of(catalog, nullptr, "_nested_tensor_size.out") == "cannot from _nested_tensor_size");
  CHECK(state_of(catalog, nullptr, "cudnn_convolution") == "cannot only for CUDA, MPS");

  const Description some =
      described({{"add.out", "kite::add"}, {"cudnn_convolution", "kite::conv"}});
  CHECK(state_of(catalog, &some, "add.out") == "kernel kite::add");
  CHECK(state_of(catalog, &some, "add_.Tensor") == "kernel kite::add, from add.out");
  CHECK(state_of(catalog, &some, "cudnn_convolution") == "kernel kite::conv");
  CHECK(state_of(catalog, &some, "empty.memory_format") == "built-in");
  const Description loss = described({{"mse_loss.out", "kite::loss"}});
  CHECK(state_of(catalog, &loss, "mse_loss") == "kernel kite::loss, from mse_loss.out");

  const Description own = described({{"empty.memory_format", "kite::empty"}}, Fallback::kError);
  CHECK(state_of(catalog, &own, "empty.memory_format") == "kernel kite::empty");
  CHECK(state_of(catalog, &own, "add.out") == "error");
  CHECK(state_of(catalog, &own, "add.Tensor") == "error from add.out");
  CHECK(state_of(catalog, &own, "add.Scalar") == "free composite");

  const Description unknown = described({{"gone.out", "kite::gone"}});
  CHECK(count_states(judge_operators(catalog, &unknown)) ==
        count_states(judge_operators(catalog, nullptr)));
}

TEST_CASE("the lists of BackendKit's own operators are sorted", "[ops]") {
  for (const auto names : {builtin_operators(), hosted_operators()}) {
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    for (const std::string_view name : names) CHECK(is_builtin(name) != is_hosted(name));
  }
  const auto composites = composite_operators();
  CHECK(std::ranges::is_sorted(composites, std::less_equal<>{}, &Composite::op));
  for (const Composite& one : composites) {
    CHECK(!is_builtin(one.op));
    CHECK(!is_hosted(one.op));
    CHECK(find_composite(one.op) == &one);
  }
  CHECK(find_composite("add.out") == nullptr);
  CHECK(is_builtin("view"));
  CHECK(is_hosted("convolution_overrideable"));
  CHECK(!is_builtin("vie"));
}

TEST_CASE("patterns", "[ops]") {
  const Catalog catalog = sample();
  CHECK(found(catalog, "").size() == catalog.operators().size());
  CHECK(found(catalog, "add") == Names{"add.Tensor", "add_.Tensor", "add.out", "add.Scalar"});
  CHECK(found(catalog, "add_") == Names{"add_.Tensor"});
  CHECK(found(catalog, "add.out") == Names{"add.out"});
  CHECK(found(catalog, "aten::add.out") == Names{"add.out"});
  CHECK(found(catalog, "indices") == Names{"_indices"});
  CHECK(found(catalog, "conv") == Names{"cudnn_convolution", "conv2d", "convolution_overrideable"});
  CHECK(found(catalog, "conv?d") == Names{"conv2d"});
  CHECK(found(catalog, "add.o") == Names{"add.out"});
  CHECK(found(catalog, "ADD").empty());
  CHECK(guess_pattern(catalog, "addd") == "add");
  CHECK(guess_pattern(catalog, "add.Tesnor") == "add.Tensor");
  CHECK(guess_pattern(catalog, "zzzzzz") == std::nullopt);
}

TEST_CASE("groups", "[ops]") {
  const Catalog catalog = sample();
  const GroupIndex index(catalog);
  const auto group = [&](const char* name) {
    return operator_groups()[index.group_of(*catalog.find(name))].key;
  };
  CHECK(group("add.Tensor") == "elementwise");  // since one variant is pointwise
  CHECK(group("add.out") == "elementwise");
  CHECK(group("_indices") == "sparse");
  CHECK(group("_nested_tensor_size.out") == "nested");
  CHECK(group("cudnn_convolution") == "vendor");
  CHECK(group("conv2d") == "convolution");
  CHECK(group("twist") == "other");
  std::vector<std::string_view> keys;
  for (const OperatorGroup& one : operator_groups()) keys.push_back(one.key);
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

TEST_CASE("changes between two releases", "[ops]") {
  const Catalog after = sample();
  Diagnostics problems;
  const Catalog before = catalog_of(R"(
- func: add.Tensor(Tensor self, Tensor other) -> Tensor
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
- func: twist(Tensor self, str how="<b>&'") -> Tensor
  use_const_ref_for_mutable_tensors: True
- func: turn(Tensor self) -> Tensor
)",
                                    problems);
  const Description description = described({{"add.out", "kite::add"}, {"turn", "kite::turn"}});
  const auto changes = compare_catalogs(before, after, &description);
  const auto change = [&](const std::string& name) {
    const auto at = std::find_if(changes.begin(), changes.end(),
                                 [&](const OperatorChange& one) { return one.name == name; });
    REQUIRE(at != changes.end());
    return *at;
  };
  CHECK(change("turn").kind == ChangeKind::kRemoved);
  CHECK(change("turn").kernel == "kite::turn");
  CHECK(change("add.Tensor").kind == ChangeKind::kChanged);
  CHECK(change("add.Tensor").before == "add.Tensor(Tensor self, Tensor other) -> Tensor");
  CHECK(change("add.Tensor").kernel == "kite::add");
  CHECK(change("add_.Tensor").kind == ChangeKind::kAdded);
  CHECK(change("conv2d").kernel.empty());
  CHECK(std::none_of(changes.begin(), changes.end(), [](const OperatorChange& one) {
    return one.name == "add.out" || one.name == "twist";
  }));
  CHECK(compare_catalogs(after, after, &description).empty());
  CHECK(changes_text({}).empty());
}

TEST_CASE("texts of an operator are quoted for HTML and JSON", "[ops]") {
  const Catalog catalog = sample();
  const OperatorReport report = {&catalog, {2, 13, 0}, nullptr, judge_operators(catalog, nullptr)};
  const std::string page = operators_page(report);
  CHECK(page.find("(Tensor self, str how=&quot;&lt;b&gt;&amp;'&quot;) -&gt; Tensor") !=
        std::string::npos);
  CHECK(page.find("<b>&") == std::string::npos);
  CHECK(operators_json(report).find(R"(str how=\"<b>&'\")") != std::string::npos);
}

TEST_CASE("names of begun kernels", "[ops]") {
  const Catalog catalog = sample();
  const TorchInstall torch = {"/t/torch", "/t/list.yaml", {2, 13, 0}};
  const auto lines = [&](const std::string& operators, const Description* description) {
    Diagnostics problems;
    const auto text = kernel_stubs(operators, description, catalog, torch, problems);
    REQUIRE(text);
    Names names;
    for (std::size_t at = text->find("//   \""); at != std::string::npos;
         at = text->find("//   \"", at + 1)) {
      names.push_back(text->substr(at + 5, text->find('\n', at) - at - 5));
    }
    return names;
  };
  CHECK(lines("add.out", nullptr) == Names{R"("add.out" = "foo::add")"});
  CHECK(lines("add.out, add.Scalar", nullptr) ==
        Names{R"("add.out" = "foo::add")", R"("add.Scalar" = "foo::add_Scalar")"});
  const Description description = described({{"add.Scalar", "kite::add"}});
  CHECK(lines("add.out,add.Scalar,_indices", &description) ==
        Names{R"("add.out" = "kite::add_out")", R"("add.Scalar" = "kite::add")",
              R"("_indices" = "kite::indices")"});
}
