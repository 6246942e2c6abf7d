// SPDX-License-Identifier: Apache-2.0
#include "glue/template.h"

#include <map>
#include <set>

#include "catch.h"
#include "glue/project.h"
#include "torch/parse_schema.h"

using namespace backendgen;

namespace {

std::string error_of(const TemplateFile& file, const Values& values) {
  try {
    fill(file, values);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

Description sample() {
  Description description;
  description.name.value = "foo";
  description.package.value = "torch_foo";
  description.version.value = "0.1.0";
  description.summary.value = "A \"quoted\" \\ summary";
  description.runtime.value = "foo::Runtime";
  description.header.value = "runtime.h";
  description.group.value = "fooccl";
  description.torch_requires.value = ">=2.5";
  description.imports = {{"torch_foo.extras", {}}};
  description.amp_dtypes = {{"float16", {}}};
  description.entry_points = {
      {{"console_scripts", {}}, {{{"foo-info", {}}, {"torch_foo.x:y", {}}}}}};
  return description;
}

}  // namespace

TEST_CASE("a template gets texts as they are", "[template]") {
  Values values;
  values.texts["name"] = "<a & \"b\">";
  CHECK(fill({"t", "x {{name}} y\n"}, values) == "x <a & \"b\"> y\n");
}

TEST_CASE("tags of what is shown leave no empty lines, a hidden section one", "[template]") {
  Values values;
  values.sections["yes"] = true;
  values.sections["no"] = false;
  values.lists["rows"] = {{{{"k", "1"}}, {}, {}}, {{{"k", "2"}}, {}, {}}};
  CHECK(fill({"t",
              "a\n{{#yes}}\nb\n{{/yes}}\n{{#no}}\nc\n{{/no}}\n{{^no}}\nd\n{{/no}}\n"
              "{{#rows}}\n- {{k}}\n{{/rows}}\n"},
             values) == "a\nb\n\nd\n- 1\n- 2\n");
}

TEST_CASE("a template with a fault names file and line", "[template]") {
  CHECK(error_of({"glue/x.cpp", "one\ntwo {{devcie}}\n"}, {}) ==
        "template glue/x.cpp:2: unknown variable `devcie`");
  CHECK(error_of({"glue/x.cpp", "{{#open}}\n"}, {}).find("template glue/x.cpp: Unclosed section") ==
        0);
  CHECK(error_of({"glue/x.cpp", "{{> partial}}\n"}, {}) ==
        "template glue/x.cpp:1: unknown variable `partial`");
}

TEST_CASE("every embedded template fills in, and no variable is offered in vain", "[template]") {
  const TorchInstall torch = {"/t/torch", "/t/native_functions.yaml", {2, 13, 0}};
  KernelModel kernel;
  kernel.op = "add.out";
  kernel.function = "foo::add";
  kernel.function_namespace = "foo";
  kernel.function_name = "add";
  kernel.signature = "void ()";
  kernel.return_type = "void";
  kernel.headers = {"ATen/core/Tensor.h"};
  kernel.meta_class = "add_Tensor";
  kernel.registrations = {{"add.out", "Kernel"}};
  Description description = sample();
  description.kernels = {{{"add.out", {}}, {"foo::add", {}}}};
  Diagnostics problems;
  CustomOperator custom;
  custom.schema = parse_schema("twice_(Tensor(a!) x, int n=2) -> ()", {}, problems);
  REQUIRE(custom.schema);
  custom.kernel.value = custom.cpu.value = custom.meta.value = "foo::twice";
  custom.fake.value = custom.backward.value = custom.setup_context.value = "torch_foo.x:y";
  description.custom = {custom};
  Values values = glue_values(description, torch, {{kernel}, {{"mm", CastPolicy::kFp32, ""}}});
  const Values registered = registration_values({&kernel});
  for (const auto& [name, items] : registered.lists) values.lists[name] = items;
  for (const auto& [name, text] : registered.texts) values.texts[name] = text;
  values.lists["torch_matrix"] = {{{{"release", "2.13.0"}}, {}, {}}};
  values.texts["tested"] = "2.13.0 3.13";
  values.sections["nightly"] = true;

  std::set<std::string> used;
  for (const TemplateFile& file : templates()) {
    INFO(file.path);
    // Those of `ops` and `shell` have values of their own, and golden tests.
    if (file.path.substr(0, 6) == "tools/" || file.path.substr(0, 7) == "schema/") continue;
    if (file.path.substr(0, 4) == "ops/" || file.path.substr(0, 6) == "shell/") continue;
    // These are copied as they are.
    if (file.path.substr(0, 14) == "python/common/") continue;
    CHECK(error_of(file, values).empty());
    fill(file, values, &used);
  }
  for (const auto& [name, text] : values.texts) {
    INFO(name);
    CHECK(used.count(std::string(name)) == 1);
  }
  for (const auto& [name, shown] : values.sections) {
    INFO(name);
    CHECK(used.count(std::string(name)) == 1);
  }
  for (const auto& [name, items] : values.lists) {
    INFO(name);
    CHECK(used.count(std::string(name)) == 1);
  }
}

TEST_CASE("texts are quoted for Python", "[project]") {
  const Values values = description_values(sample());
  CHECK(values.texts.at("summary_quoted") == R"("A \"quoted\" \\ summary")");
  CHECK(values.texts.at("imports") == R"(["torch_foo.extras"])");
  CHECK(values.texts.at("entry_points") ==
        "{\n    \"torch.backends\": [\"torch_foo = torch_foo:_autoload\"],\n"
        "    \"console_scripts\": [\"foo-info = torch_foo.x:y\"],\n"
        "    \"torch.distributed.backends\": "
        "[\"fooccl = torch_foo._distributed:register_entry\"],\n}");
}

TEST_CASE("a plan is sorted, and its paths stay below the folder", "[project]") {
  for (const Plan& plan : {plan_project(sample()), plan_glue(sample(), {{}, {}, {2, 13, 0}}, {})}) {
    REQUIRE_FALSE(plan.empty());
    for (std::size_t i = 0; i < plan.size(); ++i) {
      INFO(plan[i].path);
      CHECK(plan[i].path.find("..") == std::string::npos);
      CHECK(plan[i].path.front() != '/');
      CHECK(plan[i].path.find('@') == std::string::npos);
      if (i > 0) CHECK(plan[i - 1].path < plan[i].path);
    }
  }
}
