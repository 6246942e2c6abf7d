// SPDX-License-Identifier: Apache-2.0
#include "glue/project.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/ascii.h"
#include "base/quote.h"
#include "description/dtypes.h"
#include "description/keys.h"
#include "glue/custom_model.h"
#include "glue/kernel_rows.h"

namespace backendgen {

namespace {

std::string python_list(const std::vector<Text>& texts) {
  std::vector<std::string> quoted;
  for (const Text& text : texts) quoted.push_back(quote(text.value));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

/// The entry points as a Python dictionary: group → list of "name = target".
std::string python_entry_points(const Description& description) {
  std::string text = "{\n";
  for (const EntryPointGroup& group : description.all_entry_points()) {
    std::vector<std::string> lines;
    for (const EntryPoint& entry : group.entries) {
      lines.push_back(quote(fmt::format("{} = {}", entry.name.value, entry.target.value)));
    }
    text += fmt::format("    {}: [{}],\n", quote(group.name.value), fmt::join(lines, ", "));
  }
  return text + "}";
}

/// For the names of environment variables; an identifier has ASCII letters only.
std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return is_lower(letter) ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return text;
}

/// autocast's default dtype in C++.
std::string autocast_default(const Description& description) {
  if (description.amp_dtypes.empty()) return "std::nullopt";
  const bool half = description.amp_dtypes.front().value == "float16";
  return half ? "c10::ScalarType::Half" : "c10::ScalarType::BFloat16";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// The dtypes of all kernels together, in the order of PyTorch's names, as a Python list; None when
/// a kernel takes any.
std::string kernel_dtypes(const Description& description) {
  std::vector<Text> all;
  for (const std::string& name : dtype_names()) {
    const auto computes = [&](const Kernel& kernel) {
      return std::any_of(kernel.dtypes.begin(), kernel.dtypes.end(),
                         [&](const Text& dtype) { return dtype.value == name; });
    };
    if (std::any_of(description.kernels.begin(), description.kernels.end(), computes)) {
      all.push_back({name, {}});
    }
  }
  const bool any = std::any_of(description.kernels.begin(), description.kernels.end(),
                               [](const Kernel& kernel) { return kernel.dtypes.empty(); });
  return any ? "None" : python_list(all);
}

/// The operators of all kernels, in file order, as a Python list.
std::string kernel_names(const Description& description) {
  std::vector<Text> names;
  for (const Kernel& kernel : description.kernels) names.push_back(kernel.op);
  return python_list(names);
}

/// Adds every template below `folder`, for a place below `target`, which may be empty.
void add_tree(Plan& plan, const Values& values, std::string_view folder, std::string target) {
  if (!target.empty()) target += '/';
  for (const TemplateFile& file : templates_below(folder)) {
    std::string path = target + std::string(file.path.substr(folder.size()));
    replace_all(path, "@package@", values.texts.at("package"));
    replace_all(path, "@device@", values.texts.at("device"));
    plan.push_back({std::move(path), fill(file, values)});
  }
}

/// Adds every file below `folder` as it is, for a place below `target`. These templates have
/// nothing to fill in, so that they are valid Python, which linters and type checkers can check
/// here.
void add_copies(Plan& plan, std::string_view folder, const std::string& target) {
  for (const TemplateFile& file : templates_below(folder)) {
    const std::string_view path = file.path.substr(folder.size());
    plan.push_back({fmt::format("{}/{}", target, path), std::string(file.text)});
  }
}

/// Adds the files that register kernels.
void add_registrations(Plan& plan, const std::vector<KernelModel>& kernels) {
  constexpr std::string_view kFolder = "registrations/";
  constexpr std::string_view kFile = "register_kernels_@number@.cpp";
  const TemplateFile& file = find_template(std::string(kFolder).append(kFile));
  std::size_t number = 0;
  for (const Kernels& some : shards(all_of(kernels))) {
    std::string path(kFile);
    replace_all(path, "@number@", fmt::format("{}", number++));
    plan.push_back({std::move(path), fill(file, registration_values(some))});
  }
}

Plan sorted(Plan plan) {
  std::sort(plan.begin(), plan.end(),
            [](const PlannedFile& a, const PlannedFile& b) { return a.path < b.path; });
  return plan;
}

/// "2.5.1:3.10 2.5.1:3.12 ...": the oldest and the newest PyTorch, each with the oldest and the
/// newest Python that it has wheels for.
std::string tested_pairs(const std::vector<TorchRelease>& releases) {
  std::vector<std::string> pairs;
  const auto add = [&pairs](const TorchRelease& release) {
    for (const int python : {release.oldest_python, release.newest_python}) {
      pairs.push_back(fmt::format("{}:3.{}", release.version.text(), python));
    }
  };
  add(releases.front());
  if (releases.size() > 1) add(releases.back());
  return fmt::format("{}", fmt::join(pairs, " "));
}

std::string with_slashes(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

}  // namespace

Values description_values(const Description& description) {
  const std::string& runtime = description.runtime.value;
  const std::size_t colons = runtime.rfind("::");
  const bool nested = colons != std::string::npos;
  const bool submodule = description.layout == Layout::kSubmodule;
  const bool falls_back = description.fallback == Fallback::kCpu;
  Values values;
  values.texts = {
      {"device", description.name.value},
      {"device_upper", upper_case(description.name.value)},
      {"package", description.package.value},
      {"module", description.module()},
      {"version", description.version.value},
      {"summary", description.summary.value},
      {"summary_quoted", quote(description.summary.value)},
      {"display_name_quoted", quote(description.display_name.value)},
      {"runtime", runtime},
      {"runtime_namespace", nested ? runtime.substr(0, colons) : ""},
      {"header_quoted", quote(description.header.value)},
      {"on_failure", std::string(word_of(description.on_failure))},
      {"layout", submodule ? "submodule" : "package"},
      {"fallback", falls_back ? "cpu" : "error"},
      {"imports", python_list(description.imports)},
      {"amp_dtypes", python_list(description.amp_dtypes)},
      {"has_ops", description.custom.empty() ? "False" : "True"},
      {"kernel_dtypes", kernel_dtypes(description)},
      {"kernels", kernel_names(description)},
      {"driver_libraries", python_list(description.driver_libraries)},
      {"device_nodes", python_list(description.device_nodes)},
      {"driver_install_quoted", quote(description.driver_install.value)},
      {"runtime_package", description.runtime_package.value},
      {"runtime_requires", description.runtime_requires.value},
      {"amp_default", autocast_default(description)},
      {"entry_points", python_entry_points(description)},
      {"torch_requires", description.torch_requires.value},
      {"distributed", description.distributed ? description.group.value : ""},
      {"backendkit_version", BACKENDGEN_VERSION},
  };
  values.sections = {
      {"fallback_cpu", falls_back},
      {"has_runtime_package", !description.runtime_package.value.empty()},
      {"has_kernels", !description.kernels.empty() || !description.custom.empty()},
  };
  return values;
}

Values glue_values(const Description& description, const TorchInstall& torch,
                   const GlueModel& model) {
  Values values = description_values(description);
  const TorchVersion& version = torch.version;
  values.texts["torch_minor"] = version.minor_text();
  values.texts["torch_next_minor"] = fmt::format("{}.{}", version.major, version.minor + 1);
  const Kernels kernels = all_of(model.kernels);
  const std::vector<KernelModel> custom = custom_functions(description);
  Kernels functions = kernels;
  for (const KernelModel& function : custom) functions.push_back(&function);
  values.lists.add("autocast", autocast_rows(model.autocast));
  values.texts.add("kernel_declarations", declarations(functions));
  values.lists.add("kernel_headers", header_rows(functions));
  values.texts.add("kernel_operators", operator_lines(kernels));
  add_custom_rows(description, custom, values);
  return values;
}

Values registration_values(const Kernels& kernels) {
  Values values;
  values.texts.add("kernel_short_declarations", short_declarations(kernels));
  values.lists.add("kernel_headers", header_rows(kernels));
  values.lists.add("meta_headers", meta_header_rows(kernels));
  values.texts.add("kernel_structs", kernel_structs(kernels));
  values.texts.add("kernel_registrations", registration_lines(kernels));
  return values;
}

Plan plan_project(const Description& description) {
  const Values values = description_values(description);
  Plan plan;
  add_tree(plan, values, "project/", "");
  return sorted(std::move(plan));
}

Plan plan_glue(const Description& description, const TorchInstall& torch, const GlueModel& model) {
  const Values values = glue_values(description, torch, model);
  const std::string package = "python/" + description.package.value;
  const std::string module = "python/" + with_slashes(description.module());
  const bool submodule = description.layout == Layout::kSubmodule;
  Plan plan;
  add_tree(plan, values, "glue/", "");
  if (!description.distributed) {
    std::erase_if(plan, [](const PlannedFile& file) { return file.path == "distributed.cpp"; });
  }
  add_registrations(plan, model.kernels);
  if (!description.custom.empty()) {
    add_tree(plan, values, "custom/glue/", "");
    add_tree(plan, values, "custom/python/", module);
  }
  add_tree(plan, values, "packaging/", "packaging");
  add_tree(plan, values, "python/generated/", package);
  add_copies(plan, "python/common/", module);
  add_copies(plan, submodule ? "python/submodule/" : "python/package/", package);
  return sorted(std::move(plan));
}

std::string plan_ci(const Description& description, const CiPlan& plan) {
  Values values = description_values(description);
  auto& matrix = values.lists["torch_matrix"];
  for (const TorchRelease& release : plan.releases) {
    matrix.push_back({{{"release", release.version.text()}}, {}, {}});
  }
  values.texts["tested"] = quote(tested_pairs(plan.releases));
  values.sections["nightly"] = plan.kind == CiKind::kNightly;
  const bool own_file = plan.service == "github" && plan.kind != CiKind::kWheels;
  const std::string_view suffix = !own_file                       ? ""
                                  : plan.kind == CiKind::kNightly ? "-nightly"
                                                                  : "-crcr";
  return fill(find_template(fmt::format("ci/{}{}.yml", plan.service, suffix)), values);
}

}  // namespace backendgen
