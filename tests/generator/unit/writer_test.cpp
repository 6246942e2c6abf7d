// SPDX-License-Identifier: Apache-2.0
#include "glue/writer.h"

#include "catch.h"
#include "fake_disk.h"

using namespace backendgen;

namespace {

const Plan kPlan = {{"a.h", "alpha\n"}, {"sub/b.cpp", "beta\n"}};

std::vector<State> states(const Plan& plan, const FakeDisk& disk) {
  Diagnostics problems;
  const auto comparisons = compare(plan, "/out", disk, problems);
  REQUIRE(comparisons);
  std::vector<State> all;
  for (const Comparison& one : *comparisons) all.push_back(one.state);
  return all;
}

bool generate(const Plan& plan, FakeDisk& disk, Diagnostics& problems) {
  const auto comparisons = compare(plan, "/out", disk, problems);
  return comparisons && write_generated(plan, *comparisons, "/out", disk, problems);
}

}  // namespace

TEST_CASE("a plan is written with its folders and a stamp", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  CHECK(states(kPlan, disk) == std::vector<State>{State::kMissing, State::kMissing});
  REQUIRE(generate(kPlan, disk, problems));
  CHECK(disk.files.at("/out/a.h") == "alpha\n");
  CHECK(disk.files.at("/out/sub/b.cpp") == "beta\n");
  CHECK(disk.files.count("/out/.backendgen") == 1);
  CHECK(disk.files.size() == 3);
  CHECK(states(kPlan, disk) == std::vector<State>{State::kUnchanged, State::kUnchanged});
}

TEST_CASE("a file that did not change is not written again", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  REQUIRE(generate(kPlan, disk, problems));
  disk.writes_before_full = 0;
  CHECK(generate(kPlan, disk, problems));
}

TEST_CASE("an outdated file is told from an edited one", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  REQUIRE(generate(kPlan, disk, problems));
  const Plan newer = {{"a.h", "alpha 2\n"}, {"sub/b.cpp", "beta 2\n"}};
  disk.files["/out/sub/b.cpp"] = "my edit\n";
  CHECK(states(newer, disk) == std::vector<State>{State::kOutdated, State::kEdited});
}

TEST_CASE("a file that stood there before the first run counts as edited", "[writer]") {
  FakeDisk disk;
  disk.folders.insert("/out");
  disk.files["/out/a.h"] = "mine\n";
  CHECK(states(kPlan, disk) == std::vector<State>{State::kEdited, State::kMissing});
}

TEST_CASE("a file that the plan has no more is surplus and goes", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  REQUIRE(generate(kPlan, disk, problems));
  const Plan smaller = {{"a.h", "alpha\n"}};
  CHECK(states(smaller, disk) == std::vector<State>{State::kUnchanged, State::kSurplus});
  REQUIRE(generate(smaller, disk, problems));
  CHECK(disk.files.count("/out/sub/b.cpp") == 0);
}

TEST_CASE("a stamp cannot name files outside its folder", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  REQUIRE(generate(kPlan, disk, problems));
  disk.files["/precious"] = "beta\n";
  std::string& stamp = disk.files["/out/.backendgen"];
  const std::string line = stamp.substr(stamp.find("sub/b.cpp") - 18, 18);
  stamp += line + "../precious\n" + line + "/precious\n" + line + "x/../../precious\n";
  REQUIRE(generate({{"a.h", "alpha\n"}}, disk, problems));
  CHECK(disk.files.count("/precious") == 1);
}

TEST_CASE("a full disk leaves the old files as they were", "[writer]") {
  for (int writes = 0; writes < 3; ++writes) {
    FakeDisk disk;
    Diagnostics problems;
    REQUIRE(generate(kPlan, disk, problems));
    const auto before = disk.files;
    disk.writes_before_full = writes;
    CHECK_FALSE(generate({{"a.h", "alpha 2\n"}, {"sub/b.cpp", "beta 2\n"}}, disk, problems));
    CHECK(disk.files == before);
    REQUIRE(problems.error_count() == 1);
    CHECK(problems.sorted()[0].message.find("No space left on device") != std::string::npos);
  }
}

TEST_CASE("a failed first run leaves nothing behind", "[writer]") {
  for (int writes = 0; writes < 3; ++writes) {
    FakeDisk disk;
    Diagnostics problems;
    disk.writes_before_full = writes;
    CHECK_FALSE(generate(kPlan, disk, problems));
    CHECK(disk.files.empty());
    CHECK(disk.folders == std::set<std::string>{"/"});
  }
}

TEST_CASE("a rename that fails removes what it made", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  disk.renames_before_failure = 1;
  CHECK_FALSE(write_new(kPlan, "/out", disk, problems));
  CHECK(disk.files.empty());
  CHECK(disk.folders == std::set<std::string>{"/"});
}

TEST_CASE("a folder that cannot be made is named", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  disk.read_only.insert("/");
  CHECK_FALSE(write_new(kPlan, "/out", disk, problems));
  CHECK(problems.sorted()[0].message == "cannot make the folder /out: Permission denied");
}

TEST_CASE("a folder in a file's place is no reason to lose others", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  disk.folders.insert("/out");
  disk.folders.insert("/out/sub");
  disk.folders.insert("/out/sub/b.cpp");
  CHECK_FALSE(write_new(kPlan, "/out", disk, problems));
  CHECK(disk.files.empty());
  CHECK(problems.sorted()[0].message == "cannot write /out/sub/b.cpp: a folder is there");
}

TEST_CASE("what the stamp names is not foreign, nor is what is as planned", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  const auto foreign = [&](const Plan& plan) {
    const auto comparisons = compare(plan, "/out", disk, problems);
    REQUIRE(comparisons);
    return find_foreign(*comparisons, "/out", disk);
  };
  using Names = std::vector<std::string>;
  CHECK(foreign(kPlan).empty());
  disk.folders.insert("/out");
  disk.folders.insert("/out/sub");
  disk.files["/out/sub/b.cpp"] = "beta\n";  // of a run that is not done
  disk.files["/out/sub/b.cpp.backendgen-new-1"] = "be";
  disk.files["/out/.made"] = "";
  CHECK(foreign(kPlan).empty());
  disk.files["/out/sub/c.cpp"] = "mine\n";
  disk.files["/out/a.h"] = "mine\n";
  CHECK(foreign(kPlan) == Names{"a.h", "sub/"});
  disk.files.erase("/out/sub/c.cpp");
  disk.files.erase("/out/a.h");
  REQUIRE(generate(kPlan, disk, problems));
  disk.files["/out/a.h"] = "an edit, which is another error\n";
  CHECK(foreign(kPlan).empty());
  CHECK(foreign({{"c.h", ""}}).empty());
  disk.files["/out/CMakeLists.txt"] = "mine\n";
  CHECK(foreign(kPlan) == Names{"CMakeLists.txt"});
}

TEST_CASE("what a killed run has left goes", "[writer]") {
  FakeDisk disk;
  Diagnostics problems;
  REQUIRE(generate(kPlan, disk, problems));
  const auto before = disk.files;
  disk.files["/out/a.h.backendgen-new-1"] = "al";
  disk.files["/out/sub/b.cpp.backendgen-new"] = "be";
  remove_leftovers(kPlan, "/out", disk);
  CHECK(disk.files == before);
}

TEST_CASE("the real disk gives names and locks to one process each", "[writer]") {
  RealDisk disk;
  const auto folder = std::filesystem::temp_directory_path();
  const auto one = disk.unused(folder / "backendgen");
  CHECK(one != disk.unused(folder / "backendgen"));
  CHECK(one.filename().string().starts_with("backendgen-"));
  CHECK_FALSE(disk.lock(folder / "no such folder"));
}
