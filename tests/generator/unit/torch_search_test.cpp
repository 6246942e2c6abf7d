// SPDX-License-Identifier: Apache-2.0
#include "torch/search.h"

#include <sstream>

#include "catch.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

class NoProcess : public Process {
 public:
  Outcome run(const Command&) override {
    FAIL("a program was run");
    return {};
  }
};

struct World {
  FakeDisk disk;
  NoProcess process;
  std::ostringstream out;
  Console console{out, out, Colour::kNever};
  std::map<std::string, std::string> variables;
  Context context{disk, process, console, "/users/me/kite", [this](const std::string& name) {
                    const auto found = variables.find(name);
                    return found == variables.end() ? std::nullopt : std::optional(found->second);
                  }};
  Diagnostics problems;

  void add_folders(const std::filesystem::path& path) {
    for (auto folder = path; folder != folder.parent_path(); folder = folder.parent_path()) {
      disk.folders.insert(folder.string());
    }
  }

  void install(const std::filesystem::path& packages, const std::string& version) {
    add_folders(packages / "torch");
    disk.files[(packages / "torch/version.py").string()] = "__version__ = '" + version + "'\n";
    disk.files[(packages / "torchgen/packaged/ATen/native/native_functions.yaml").string()] = "";
  }

  /// The folder of the PyTorch found, or what is wrong.
  std::string search(const std::string& named, const TorchInstall* active = nullptr) {
    problems = {};
    const auto found = search_torch(named, "since", active, context, problems);
    if (found) return found->folder.string();
    std::string text;
    for (const Diagnostic& problem : problems.sorted()) {
      text += problem.message;
      for (const std::string& note : problem.notes) text += "; " + note;
    }
    return text;
  }
};

}  // namespace

TEST_CASE("a folder stands for the PyTorch in it", "[torch_search]") {
  World world;
  world.install("/users/me/kite/env/lib/python3.11/site-packages", "2.11.0+cpu");
  const std::string torch = "/users/me/kite/env/lib/python3.11/site-packages/torch";
  CHECK(world.search("env") == torch);
  CHECK(world.search("/users/me/kite/env") == torch);
  CHECK(world.search("env/lib/python3.11/site-packages") == torch);
  CHECK(world.search("env/lib/python3.11/site-packages/torch") == torch);
  CHECK(world.search("env/lib") == "no PyTorch in `/users/me/kite/env/lib`");
  world.install("/users/me/kite/win/Lib/site-packages", "2.11.0+cpu");
  CHECK(world.search("win") == "/users/me/kite/win/Lib/site-packages/torch");
}

TEST_CASE("a release is looked for where environments lie", "[torch_search]") {
  World world;
  world.install("/envs/a/lib/python3.11/site-packages", "2.11.0+cpu");
  world.install("/envs/b/lib/python3.12/site-packages", "2.11.2+cpu");
  world.install("/envs/c/lib/python3.12/site-packages", "2.13.0");
  world.install("/users/me/kite/.venv/lib/python3.12/site-packages", "2.9.1");
  world.install("/users/me/kite/.tox/py/lib64/python3.12/site-packages", "2.10.0");
  world.install("/envs/old/lib/python3.9/site-packages", "2.0.1");  // not supported
  const std::string nothing =
      "found no PyTorch 2.11; looked for environments in /users/me/kite, /users/me/kite/.tox, "
      "/users/me/kite/.nox; found PyTorch 2.9.1, 2.10.0 there";
  CHECK(world.search("2.11") == nothing);
  world.variables["VIRTUAL_ENV"] = "/envs/c";
  CHECK(world.search("2.11") == "/envs/b/lib/python3.12/site-packages/torch");
  CHECK(world.search("2.11.0") == "/envs/a/lib/python3.11/site-packages/torch");
  CHECK(world.search("2.9") == "/users/me/kite/.venv/lib/python3.12/site-packages/torch");
  CHECK(world.search("2.10") == "/users/me/kite/.tox/py/lib64/python3.12/site-packages/torch");
  CHECK(world.search("2.0").find("found no PyTorch 2.0; ") == 0);

  world.variables.clear();
  const TorchInstall active = {"/envs/c/lib/python3.12/site-packages/torch", "", {2, 13, 0}};
  CHECK(world.search("2.11", &active) == "/envs/b/lib/python3.12/site-packages/torch");
}

TEST_CASE("what is neither a folder nor a release", "[torch_search]") {
  World world;
  for (const char* text : {"latest", "2", "2.", "2.11.", "2.11.0.1", "2.11+cpu", "v2.11"}) {
    CHECK(world.search(text) ==
          "`--since " + std::string(text) + "` is neither a folder nor a release of PyTorch");
  }
}
