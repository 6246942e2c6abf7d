// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "base/disk.h"
#include "catch.h"

using namespace backendgen;

TEST_CASE("a program's status and both streams come back", "[process]") {
  RealProcess process;
  const Outcome outcome = process.run({{"sh", "-c", "echo out; echo err >&2; exit 3"}, {}, {}, {}});
  CHECK(outcome.status == 3);
  CHECK(outcome.out == "out\n");
  CHECK(outcome.err == "err\n");
  CHECK(outcome.why.empty());
}

TEST_CASE("more than a pipe holds on both streams does not block", "[process]") {
  RealProcess process;
  const std::string script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2";
  const Outcome outcome = process.run({{"sh", "-c", script}, {}, {}, {}});
  CHECK(outcome.status == 0);
  CHECK(outcome.out.size() == 300000);
  CHECK(outcome.err.size() == 300000);
}

TEST_CASE("a program that is not there is a reason, not a status", "[process]") {
  RealProcess process;
  const Outcome outcome = process.run({{"/no/such/program"}, {}, {}, {}});
  CHECK(outcome.status == -1);
  CHECK(outcome.why == "No such file or directory");
}

TEST_CASE("a signal is 128 and its number", "[process]") {
  RealProcess process;
  CHECK(process.run({{"sh", "-c", "kill -9 $$"}, {}, {}, {}}).status == 137);
}

TEST_CASE("folder, environment and no standard input", "[process]") {
  RealProcess process;
  const Outcome outcome =
      process.run({{"sh", "-c", "pwd; echo $WORD; cat"}, "/", {{"WORD", "a b"}}, {}});
  CHECK(outcome.out == "/\na b\n");
}

TEST_CASE("a real disk writes, renames, lists and gives reasons", "[disk]") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("backendgen-disk-" + std::to_string(getpid()));
  RealDisk disk;
  REQUIRE(disk.make_folder(folder));
  CHECK(disk.look(folder) == Entry::kFolder);
  const std::string bytes("a\0b\n", 4);
  REQUIRE(disk.write(folder / "one", bytes));
  CHECK(*disk.read(folder / "one") == bytes);
  REQUIRE(disk.rename(folder / "one", folder / "two"));
  CHECK(disk.look(folder / "one") == Entry::kNothing);
  CHECK(disk.list(folder) == std::vector<std::string>{"two"});
  CHECK(disk.remove(folder).why() == "Directory not empty");
  CHECK(disk.read(folder).why() == "Is a directory");
  CHECK(disk.read(folder / "none").why() == "No such file or directory");
  CHECK_FALSE(disk.write(folder / "none" / "x", bytes));
  REQUIRE(disk.write(folder / "empty", ""));
  CHECK(*disk.read(folder / "empty") == std::string());
  CHECK(disk.remove(folder / "two"));
  CHECK(disk.remove(folder / "empty"));
  CHECK(disk.remove(folder));
  CHECK(disk.list(folder).empty());
}

TEST_CASE("a real disk that is full says so", "[disk]") {
  RealDisk disk;
  CHECK(disk.write("/dev/full", std::string(100000, 'x')).why() == "No space left on device");
}

TEST_CASE("a program that runs past its limit is ended, with all that it started", "[process]") {
  RealProcess process;
  Command command{{"sh", "-c", "echo begun; sleep 1000 & sleep 1000"}, {}, {}, {}};
  command.limit = std::chrono::milliseconds(300);
  const Outcome outcome = process.run(command);
  CHECK(outcome.timed_out);
  CHECK(outcome.status == 128 + SIGKILL);
  CHECK(outcome.out == "begun\n");
}

TEST_CASE("a program that ends within its limit is as without one", "[process]") {
  RealProcess process;
  Command command{{"sh", "-c", "echo out; exit 3"}, {}, {}, {}};
  command.limit = std::chrono::minutes(5);
  const Outcome outcome = process.run(command);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.status == 3);
  CHECK(outcome.out == "out\n");
}
