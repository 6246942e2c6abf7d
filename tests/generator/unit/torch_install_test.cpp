// SPDX-License-Identifier: Apache-2.0
#include "torch/install.h"

#include <fstream>

#include <unistd.h>

#include "catch.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

class FakeProcess : public Process {
 public:
  Outcome outcome;
  Command last;

  Outcome run(const Command& command) override {
    last = command;
    return outcome;
  }
};

FakeDisk disk_with(const std::string& version) {
  FakeDisk disk;
  disk.folders.insert("/site/torch");
  disk.files["/site/torch/version.py"] =
      "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '" + version +
      "'\ndebug = False\n";
  disk.files["/site/torchgen/packaged/ATen/native/native_functions.yaml"] = "";
  return disk;
}

std::string only_error(const Diagnostics& problems) {
  REQUIRE(problems.error_count() == 1);
  return problems.sorted().front().message;
}

/// Runs programs in `folder`, with `site` on Python's path.
class ProcessIn : public RealProcess {
 public:
  std::filesystem::path folder;
  std::filesystem::path site;

  Outcome run(const Command& command) override {
    Command here = command;
    here.folder = folder;
    here.environment["PYTHONPATH"] = site.string();
    return RealProcess::run(here);
  }
};

/// A folder `torch` that no test may import.
void write_torch(const std::filesystem::path& site, const std::string& version) {
  std::filesystem::create_directories(site / "torch");
  std::ofstream(site / "torch" / "__init__.py") << "raise RuntimeError('imported')\n";
  std::ofstream(site / "torch" / "version.py") << "__version__ = '" << version << "'\n";
  const auto native = site / "torchgen" / "packaged" / "ATen" / "native";
  std::filesystem::create_directories(native);
  std::ofstream(native / "native_functions.yaml") << "[]\n";
}

}  // namespace

TEST_CASE("versions of PyTorch", "[torch_install]") {
  CHECK(TorchVersion::parse("2.13.0+cpu") == TorchVersion{2, 13, 0});
  CHECK(TorchVersion::parse("2.14.0a0+git1234") == TorchVersion{2, 14, 0});
  CHECK(TorchVersion::parse("2.5") == TorchVersion{2, 5, 0});
  CHECK(TorchVersion::parse("2.6.1.dev20250101") == TorchVersion{2, 6, 1});
  CHECK(TorchVersion{2, 13, 0}.text() == "2.13.0");
  CHECK(TorchVersion{2, 13, 0}.minor_text() == "2.13");
  for (const char* text : {"", "2", "2.", "a.b", "-2.5", "2.-5", "2.5.x", "99999999999.1"}) {
    INFO(text);
    CHECK(!TorchVersion::parse(text));
  }
}

TEST_CASE("a PyTorch on disk", "[torch_install]") {
  Diagnostics problems;
  const auto torch = open_torch("/site/torch", disk_with("2.13.0+cpu"), problems);
  REQUIRE(torch);
  CHECK(torch->folder == "/site/torch");
  CHECK(torch->version == TorchVersion{2, 13, 0});
  CHECK(torch->operators == "/site/torchgen/packaged/ATen/native/native_functions.yaml");
}

TEST_CASE("a PyTorch in a source tree", "[torch_install]") {
  FakeDisk disk = disk_with("2.13.0a0");
  disk.files.erase("/site/torchgen/packaged/ATen/native/native_functions.yaml");
  disk.files["/site/aten/src/ATen/native/native_functions.yaml"] = "";
  Diagnostics problems;
  const auto torch = open_torch("/site/torch", disk, problems);
  REQUIRE(torch);
  CHECK(torch->operators == "/site/aten/src/ATen/native/native_functions.yaml");
}

TEST_CASE("what is no usable PyTorch", "[torch_install]") {
  SECTION("no folder") {
    Diagnostics problems;
    CHECK(!open_torch("/other/torch", disk_with("2.13.0"), problems));
    CHECK(only_error(problems) == "`/other/torch` is not a folder");
  }
  SECTION("no version.py") {
    FakeDisk disk = disk_with("2.13.0");
    disk.files.erase("/site/torch/version.py");
    Diagnostics problems;
    CHECK(!open_torch("/site/torch", disk, problems));
    CHECK(only_error(problems) ==
          "no PyTorch in `/site/torch`: cannot read `version.py`: No such file or directory");
  }
  SECTION("no version") {
    for (const char* text : {"", "__version__ = ", "__version__ = '", "__version__ = 'x'"}) {
      FakeDisk disk = disk_with("2.13.0");
      disk.files["/site/torch/version.py"] = text;
      Diagnostics problems;
      CHECK(!open_torch("/site/torch", disk, problems));
      CHECK(only_error(problems) == "no PyTorch in `/site/torch`: its `version.py` has no version");
    }
  }
  SECTION("too old") {
    Diagnostics problems;
    CHECK(!open_torch("/site/torch", disk_with("2.4.1"), problems));
    CHECK(only_error(problems) == "needs PyTorch 2.5 or newer, found 2.4.1 in `/site/torch`");
    CHECK(problems.sorted().front().help ==
          std::vector<std::string>{"`python -m pip install --upgrade torch`"});
  }
  SECTION("no torchgen") {
    FakeDisk disk = disk_with("2.13.0");
    disk.files.erase("/site/torchgen/packaged/ATen/native/native_functions.yaml");
    Diagnostics problems;
    CHECK(!open_torch("/site/torch", disk, problems));
    CHECK(only_error(problems) == "PyTorch in `/site/torch` has no list of its operators");
  }
}

TEST_CASE("Python tells where its PyTorch is", "[torch_install]") {
  FakeProcess process;
  Diagnostics problems;
  SECTION("found, whatever else start-up prints") {
    process.outcome = {0, "hello from a .pth file\ntorch is in /site/torch\r\n", "", ""};
    const auto torch = find_torch("python3", disk_with("2.13.0"), process, problems);
    REQUIRE(torch);
    CHECK(torch->folder == "/site/torch");
    CHECK(process.last.words.front() == "python3");
  }
  SECTION("none") {
    process.outcome = {0, "", "", ""};
    CHECK(!find_torch("python3", disk_with("2.13.0"), process, problems));
    CHECK(only_error(problems) == "found no PyTorch in `python3`");
    CHECK(problems.sorted().front().help ==
          std::vector<std::string>{"`python3 -m pip install torch`"});
  }
  SECTION("no such Python") {
    process.outcome = {-1, "", "", "No such file or directory"};
    CHECK(!find_torch("pythno", disk_with("2.13.0"), process, problems));
    CHECK(only_error(problems) == "cannot run `pythno`: No such file or directory");
  }
  SECTION("Python fails") {
    process.outcome = {1, "", "Traceback:\nImportError: no module\n", ""};
    CHECK(!find_torch("python3", disk_with("2.13.0"), process, problems));
    CHECK(only_error(problems) == "`python3` failed with status 1");
    CHECK(problems.sorted().front().notes == std::vector<std::string>{"ImportError: no module"});
  }
}

TEST_CASE("a folder named torch where one happens to stand is not asked", "[torch_install]") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("backendgen-torch-" + std::to_string(getpid()));
  write_torch(folder / "site", "2.13.0");
  write_torch(folder / "here", "2.12.0");
  ProcessIn process;
  process.folder = folder / "here";
  process.site = folder / "site";
  RealDisk disk;
  Diagnostics problems;
  const auto torch = find_torch("python3", disk, process, problems);
  REQUIRE(torch);
  CHECK(torch->folder == folder / "site" / "torch");
  CHECK(torch->version == TorchVersion{2, 13, 0});
  std::filesystem::remove_all(folder);
}

TEST_CASE("requirements admit releases", "[torch_install]") {
  const TorchVersion version{2, 13, 1};
  for (const char* text : {">=2.5", "<3.0", "==2.13.1", ">=2.5,<2.14", " >= 2.5 , != 2.13.0 ",
                           ">2.13.0", "<=2.13.1"}) {
    INFO(text);
    CHECK(admits(text, version));
  }
  for (const char* text : {">=2.14", "<2.13", "==2.13", ">=2.5,<2.13.1", "!=2.13.1", ">2.13.1",
                           "<=2.13.0", "2.13", ">=x"}) {
    INFO(text);
    CHECK(!admits(text, version));
  }
}

TEST_CASE("a release newer than all that were tested is a warning", "[torch_install]") {
  const auto warning = [](TorchVersion version) {
    Diagnostics problems;
    warn_if_newer({"/site/torch", "/site/list.yaml", version}, problems);
    CHECK_FALSE(problems.has_errors());
    const auto all = problems.sorted();
    return all.empty() ? "" : all.front().message;
  };
  const TorchVersion newest = newest_tested();
  CHECK(warning({2, 5, 1}).empty());
  CHECK(warning(newest).empty());
  CHECK(warning({newest.major, newest.minor, 9}).empty());
  for (const TorchVersion version :
       {TorchVersion{newest.major, newest.minor + 1, 0}, TorchVersion{newest.major + 1, 0, 0}}) {
    CHECK(warning(version) == "PyTorch " + version.text() + " is newer than " +
                                  newest.minor_text() +
                                  ", the newest release that this BackendKit was tested with");
  }
}
