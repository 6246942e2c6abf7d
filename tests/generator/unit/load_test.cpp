// SPDX-License-Identifier: Apache-2.0
#include "description/load.h"

#include <sstream>
#include <string>

#include "catch.h"
#include "commands/check.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

const std::string kGood = "[backend]\nname = \"foo\"\nversion = \"0.1.0\"\n";

/// A Python that says what it is told to.
class FakePython : public Process {
 public:
  Outcome outcome;
  int runs = 0;

  Outcome run(const Command&) override {
    ++runs;
    return outcome;
  }
};

struct World {
  FakeDisk disk;
  FakePython process;
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err, Colour::kNever};
  Context context{disk, process, console, "/project/foo",
                  [](const std::string&) { return std::nullopt; }};

  World() {
    disk.folders.insert({"/project", "/project/foo", "/project/foo/csrc"});
    disk.files["/project/foo/backend.toml"] = kGood;
    disk.files["/project/foo/csrc/runtime.h"] = "";
  }
};

}  // namespace

TEST_CASE("a description is found here, above, or where it is said to be") {
  World world;
  CHECK(load("", world.context)->source.path() == "backend.toml");
  CHECK(load("backend.toml", world.context)->folder == "/project/foo");
  CHECK(load("/project/foo", world.context)->source.path() == "/project/foo/backend.toml");
  world.context.folder = "/project/foo/csrc";
  const auto loaded = load("", world.context);
  REQUIRE(loaded);
  CHECK(loaded->source.path() == "../backend.toml");
  CHECK(loaded->folder == "/project/foo");
  CHECK(loaded->description.name.value == "foo");
  CHECK(world.err.str().empty());
}

TEST_CASE("no description") {
  World world;
  world.context.folder = "/project";
  CHECK_FALSE(load("", world.context));
  CHECK_FALSE(load("nothing", world.context));
  CHECK_FALSE(load("foo/csrc", world.context));
  CHECK(world.err.str() ==
        "error: no backend.toml in /project or above it\nhelp: `backendgen new PATH` starts a "
        "project\n"
        "error: `nothing` does not exist\n"
        "error: no backend.toml in `foo/csrc`\nhelp: `backendgen new PATH` starts a project\n");
}

TEST_CASE("a description that cannot be used") {
  World world;
  world.disk.files["/project/foo/big.toml"] = std::string((1 << 20) + 1, '#');
  world.disk.files["/project/foo/bad.toml"] = kGood + "x = 1\n";
  world.disk.folders.insert({"/project/bar", "/project/bar/backend.toml"});
  CHECK_FALSE(load("big.toml", world.context));
  CHECK_FALSE(load("bad.toml", world.context));
  CHECK_FALSE(load("/project/bar", world.context));
  const std::string text = world.err.str();
  CHECK(text.find("error: `big.toml` is larger than 1 MiB\n") == 0);
  CHECK(text.find("error: unknown key `x` in [backend]\n --> bad.toml:4:1\n") != text.npos);
  CHECK(text.find("error: `/project/bar/backend.toml` is not a file\n") != text.npos);
  world.disk.files["/project/foo/most.toml"] = kGood + std::string((1 << 20) - kGood.size(), '\n');
  CHECK(load("most.toml", world.context));
}

TEST_CASE("check needs a PyTorch only for kernels") {
  World world;
  CHECK(run_check({}, world.context) == kDone);
  CHECK(world.process.runs == 0);
  CHECK(world.err.str() ==
        "     Checked backend.toml: foo, no kernels, all operators fall back to cpu\n");
  world.disk.files["/project/foo/backend.toml"] = kGood + "[operators.kernels]\n'add.out' = 'f'\n";
  world.process.outcome.status = 0;
  world.err.str("");
  CHECK(run_check({}, world.context) == kNo);
  CHECK(world.process.runs == 1);
  CHECK(world.err.str() ==
        "error: found no PyTorch in `python3`\nhelp: `python3 -m pip install torch`\n");
}

TEST_CASE("check reports the description's problems and the operators' together") {
  World world;
  world.disk.folders.insert("/t/torch");
  world.disk.files["/t/torch/version.py"] = "__version__ = '2.13.0'\n";
  world.disk.files["/t/torchgen/packaged/ATen/native/native_functions.yaml"] =
      "- func: relu(Tensor self) -> Tensor\n";
  world.disk.files["/project/foo/backend.toml"] =
      "[backend]\nname = 'Foo'\n[operators.kernels]\nrelo = 'f'\n[zip]\n";
  CHECK(run_check({"", "/t/torch", ""}, world.context) == kNo);
  const std::string text = world.err.str();
  const std::size_t version = text.find("error: [backend] has no `version`");
  const std::size_t name = text.find("error: `Foo` cannot be a device name");
  const std::size_t op = text.find("error: no operator `aten::relo`");
  const std::size_t table = text.find("error: unknown table `[zip]`");
  CHECK(text.find("error: backend.toml has 4 problems\n") != text.npos);
  CHECK(version < name);
  CHECK(name < op);
  CHECK(op < table);
  CHECK(table != text.npos);
}

TEST_CASE("check prints a description as JSON") {
  World world;
  CHECK(run_check({"", "", "json"}, world.context) == kDone);
  CHECK(world.out.str().find("\"foo\"") != std::string::npos);
  CHECK(world.err.str().empty());
}
