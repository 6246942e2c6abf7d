// SPDX-License-Identifier: Apache-2.0
// The text of a backend.toml: reading it, drawing its problems, and, where there are none, every
// file that follows from it.
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

#include "../unit/fake_disk.h"
#include "check.h"
#include "description/describe_json.h"
#include "description/document.h"
#include "description/read.h"
#include "glue/analyze.h"
#include "glue/project.h"

using namespace backendgen;
using fuzz::require;

namespace {

constexpr const char* kOperators = "/torchgen/native_functions.yaml";

/// A PyTorch of a few operators.
struct World {
  FakeDisk disk;
  TorchInstall torch{"/torch", kOperators, {2, 13, 0}};

  World() {
    std::ifstream file(BACKENDKIT_FAKE_OPERATORS, std::ios::binary);
    disk.files[kOperators].assign(std::istreambuf_iterator<char>(file), {});
    require(!disk.files[kOperators].empty(), "the tests' operators can be read",
            BACKENDKIT_FAKE_OPERATORS);
  }
};

void require_plan(const Plan& plan) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::string& path = plan[i].path;
    require(i == 0 || plan[i - 1].path < path, "files have names of their own", path);
    require(!path.empty() && path.front() != '/' && path.find("..") == path.npos &&
                path.find('\\') == path.npos && printable(path) == path,
            "files stay below their folder", path);
    require(find_invalid_utf8(plan[i].text) == std::string::npos, "files are UTF-8", path);
    if (!path.ends_with(".toml")) continue;
    const Source source(path, plan[i].text);
    Diagnostics problems;
    parse_document(source, problems);
    require(!problems.has_errors(), "files of TOML are TOML", path + "\n" + plan[i].text);
  }
}

/// What the template of a new description has of one.
std::string summary(const Description& description) {
  std::string text;
  for (const Text* one :
       {&description.name, &description.package, &description.version, &description.summary,
        &description.runtime, &description.header, &description.torch_requires}) {
    text += one->value + '\n';
  }
  for (const Text& module : description.imports) text += module.value + '\n';
  return text + std::to_string(static_cast<int>(description.layout)) +
         std::to_string(static_cast<int>(description.on_failure)) +
         std::to_string(static_cast<int>(description.fallback));
}

/// The description that `new` writes is the one that it was given.
void require_same(const Description& description, const Plan& plan) {
  for (const PlannedFile& file : plan) {
    if (file.path != "backend.toml") continue;
    const Source source(file.path, file.text);
    Diagnostics problems;
    const auto again = read_description(source, problems);
    require(again.has_value(), "new descriptions are right", file.text);
    require(summary(*again) == summary(description), "new descriptions keep values", file.text);
    return;
  }
  require(false, "a new project has a description");
}

/// Filling the templates takes a hundred times as long as reading. So of the many right
/// descriptions that a fuzzer makes up, one in 32 is followed to the end; of a corpus, all.
bool planned([[maybe_unused]] std::string_view text) {
#ifdef BACKENDKIT_FUZZ
  return std::hash<std::string_view>()(text) % 32 == 0;
#else
  return true;
#endif
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const World world;
  const Source source("backend.toml", std::string(fuzz::text_of(data, size)));
  Diagnostics whole;
  const auto description = read_description(source, whole);
  require(description.has_value() == !whole.has_errors(), "no description means an error");

  Analysis analysis;
  analysis.torch = world.torch;
  analysis.description = read_partial_description(source, analysis.problems);
  require(analysis.problems.sorted().size() == whole.sorted().size(),
          "a partial reading finds the same");
  analyze_operators(analysis, world.disk);
  fuzz::require_shown(analysis.problems, source);
  if (!description || analysis.problems.has_errors() || !planned(source.text())) return 0;

  require_plan(plan_glue(*description, world.torch, analysis.model));
  const Plan project = plan_project(*description);
  require_plan(project);
  require_same(*description, project);
  const CiPlan ci{"github", CiKind::kWheels, tested_releases()};
  require(!plan_ci(*description, ci).empty(), "there is a file for GitHub");
  require(!describe_json(*description, world.torch).empty(), "there is a description in JSON");
  return 0;
}
