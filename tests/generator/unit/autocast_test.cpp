// SPDX-License-Identifier: Apache-2.0
#include "glue/autocast.h"

#include <algorithm>

#include "catch.h"
#include "fake_disk.h"
#include "torch/autocast_lists.h"

using namespace backendgen;

namespace {

constexpr const char* kList = R"(
- func: mm(Tensor self, Tensor mat2) -> Tensor
- func: exp(Tensor self) -> Tensor
- func: relu(Tensor self) -> Tensor
- func: t(Tensor(a) self) -> Tensor(a)
- func: exp_(Tensor(a!) self) -> Tensor(a!)
- func: stack(Tensor[] tensors, int dim=0) -> Tensor
- func: eye(int n) -> Tensor
- func: dot(Tensor self, Tensor tensor) -> Tensor
- func: sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
- func: full(int[] size, Tensor fill, *, ScalarType? dtype=None) -> Tensor
- func: norm.Scalar(Tensor self, Scalar p=2) -> Tensor
- func: norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor
- func: norm.names(Tensor self, Dimname[1] dim) -> Tensor
)";

const TorchInstall kTorch{"/site/torch", "/site/list.yaml", {2, 13, 0}};

Catalog catalog() {
  FakeDisk disk;
  disk.files["/site/list.yaml"] = kList;
  Diagnostics problems;
  auto all = read_catalog(kTorch, disk, problems);
  REQUIRE(all);
  return *all;
}

Description with(CastPolicy policy, const std::string& op) {
  Description description;
  description.amp_dtypes = {{"float16", {1, 1, 7}}};
  description.amp_lists[policy] = {{op, {2, 1, op.size()}}};
  return description;
}

std::string complaint(CastPolicy policy, const std::string& op) {
  Diagnostics problems;
  check_autocast(with(policy, op), catalog(), kTorch, problems);
  const auto all = problems.sorted();
  return all.empty() ? "" : all.front().message;
}

}  // namespace

TEST_CASE("operators that a policy would break or do nothing for are refused", "[autocast]") {
  using enum CastPolicy;
  CHECK(complaint(kLowerPrecisionFp, "mm").empty());
  CHECK(complaint(kLowerPrecisionFp, "em") == "no operator `aten::em` in PyTorch 2.13");
  CHECK(complaint(kFp32, "t") ==
        "`t` cannot be in `fp32`: its result is a view, and autocast would make it one of a copy");
  CHECK(complaint(kFp32, "exp_") ==
        "`exp_` cannot be in `fp32`: it writes to `self`, and autocast would give it a copy");
  CHECK(complaint(kLowerPrecisionFp, "eye") ==
        "`eye` cannot be in `lower_precision_fp`: it takes no tensor");
  CHECK(complaint(kPromote, "relu") == "`relu` cannot be in `promote`: it takes only one tensor");
  CHECK(complaint(kPromote, "stack").empty());
  CHECK(complaint(kFp32SetOptDtype, "sum").empty());
  CHECK(complaint(kFp32SetOptDtype, "norm.Scalar").empty());
  CHECK(complaint(kFp32SetOptDtype, "exp") ==
        "`exp` cannot be in `fp32_set_opt_dtype`: it takes no `ScalarType? dtype`");
  CHECK(complaint(kFp32SetOptDtype, "norm.names") ==
        "`norm.names` cannot be in `fp32_set_opt_dtype`: it takes no `ScalarType? dtype`");
  CHECK(complaint(kFp32SetOptDtype, "full") ==
        "`full` cannot be in `fp32_set_opt_dtype`: its first argument is no tensor");
}

TEST_CASE("lists that are given go before PyTorch's", "[autocast]") {
  const auto all = model_autocast(with(CastPolicy::kFp32, "mm"), catalog(), {2, 13, 0});
  const auto find = [&](std::string_view op) {
    return std::find_if(all.begin(), all.end(),
                        [&](const AutocastOperator& one) { return one.op == op; });
  };
  CHECK(all.size() == 4);
  CHECK(find("mm")->policy == CastPolicy::kFp32);
  CHECK(find("exp") == all.end());  // fp32 is given without it
  CHECK(find("dot")->policy == CastPolicy::kPromote);
  CHECK(find("sum")->policy == CastPolicy::kFp32SetOptDtype);
  CHECK(find("sum")->with_dtype.empty());
  CHECK(find("norm.Scalar")->with_dtype == "ScalarOpt_dtype");
}

TEST_CASE("without a dtype there is no autocast", "[autocast]") {
  Description description = with(CastPolicy::kFp32, "mm");
  description.amp_dtypes.clear();
  CHECK(model_autocast(description, catalog(), {2, 13, 0}).empty());
  CHECK(usual_autocast_operators(description).empty());
}

TEST_CASE("an operator is treated from the release on in which PyTorch does", "[autocast]") {
  CHECK_FALSE(is_usual_in("rms_norm", {2, 11, 0}));
  CHECK(is_usual_in("rms_norm", {2, 12, 1}));
  CHECK(is_usual_in("layer_norm", {2, 5, 1}));
}

TEST_CASE("PyTorch's lists have each operator once", "[autocast]") {
  std::vector<std::string_view> ops;
  for (const CastPolicy policy : kCastPolicies) {
    const auto list = usual_autocast_list(policy);
    ops.insert(ops.end(), list.begin(), list.end());
  }
  std::sort(ops.begin(), ops.end());
  CHECK(std::adjacent_find(ops.begin(), ops.end()) == ops.end());
  CHECK(ops.size() > 100);
}
