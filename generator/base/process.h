// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace backendgen {

/// How a program ended. `status` is its exit status, 128 + n after signal n, or -1 when it could
/// not be started; `why` then says why not.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
  std::string why;
  bool timed_out = false;  // it ran past its limit and was ended: status 137
};

struct Command {
  std::vector<std::string> words;                  // the program, looked up in PATH, and arguments
  std::filesystem::path folder;                    // where it runs; empty: here
  std::map<std::string, std::string> environment;  // added to ours
  std::filesystem::path log;                       // when set, both streams go to this file
  /// When it is not zero, the longest that the program may run. It then has a process group of its
  /// own, which is killed as a whole at the end of that time, or when backendgen ends before.
  std::chrono::milliseconds limit{0};
};

/// Runs other programs, never through a shell. A fake takes its place in tests.
class Process {
 public:
  virtual ~Process() = default;
  virtual Outcome run(const Command& command) = 0;
};

class RealProcess : public Process {
 public:
  Outcome run(const Command& command) override;
};

}  // namespace backendgen
