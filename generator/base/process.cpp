// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

namespace backendgen {

namespace {

using Clock = std::chrono::steady_clock;

/// A pipe whose ends close themselves.
struct Pipe {
  int ends[2] = {-1, -1};

  // Closed at exec: otherwise the program would hold the pipes open, and `failed` would never end.
  // backendgen has one thread, so that no other fork comes between; macOS has no pipe2.
  Pipe() {
    if (pipe(ends) != 0) ends[0] = ends[1] = -1;
    for (const int end : ends) {
      if (end >= 0) fcntl(end, F_SETFD, FD_CLOEXEC);
    }
  }
  ~Pipe() {
    shut(0);
    shut(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void shut(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

/// Runs in the child between fork and exec: only calls that are safe there.
[[noreturn]] void become(const Command& command, char** words, int out, int err, int failed) {
  if (command.limit.count() > 0) {
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C does not reach a group that is not the terminal's
#endif
  }
  if (command.log.empty()) {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
  } else {
    const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  if (command.folder.empty() || chdir(command.folder.c_str()) == 0) {
    for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(words[0], words);
  }
  const int reason = errno;
  // Not `exit`, which would flush the parent's buffers a second time.
  if (write(failed, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

/// The time from now to `end` for `poll`: -1 without an end, 0 once it has passed.
int milliseconds_to(const std::optional<Clock::time_point>& end) {
  if (!end) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, std::numeric_limits<int>::max()));
}

/// Reads both pipes at once: the child blocks while a pipe that nobody reads is full. Returns false
/// when that lasts longer than to `end`.
bool drain(Pipe& out, Pipe& err, const std::optional<Clock::time_point>& end, Outcome& outcome) {
  pollfd waits[2] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
  std::string* texts[2] = {&outcome.out, &outcome.err};
  char buffer[65536];
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const int left = milliseconds_to(end);
    const int ready = poll(waits, 2, left);
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0 && left == 0) return false;
    if (ready <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      const ssize_t got = read(waits[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        waits[i].fd = -1;
      }
    }
  }
  return true;
}

/// Waits until the child has ended, or until `end`: false.
bool wait_for(pid_t child, const std::optional<Clock::time_point>& end, int& status) {
  for (;;) {
    const pid_t ended = waitpid(child, &status, end ? WNOHANG : 0);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (ended == 0) {
      // A child has closed its streams, so that it is about to end.
      if (milliseconds_to(end) == 0) return false;
      poll(nullptr, 0, 1);
    }
  }
}

}  // namespace

Outcome RealProcess::run(const Command& command) {
  Outcome outcome;
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  std::optional<Clock::time_point> end;
  if (command.limit.count() > 0) end = Clock::now() + command.limit;
  Pipe out, err, failed;
  const pid_t child = fork();
  if (child < 0) {
    outcome.why = std::strerror(errno);
    return outcome;
  }
  if (child == 0) become(command, words.data(), out.ends[1], err.ends[1], failed.ends[1]);
  if (end) setpgid(child, child);  // the child does it too: whoever is first

  out.shut(1);
  err.shut(1);
  failed.shut(1);
  int status = 0;
  if (!drain(out, err, end, outcome) || !wait_for(child, end, status)) {
    outcome.timed_out = true;
    kill(-child, SIGKILL);
    wait_for(child, std::nullopt, status);
  }
  int reason = 0;  // nothing arrives if exec succeeds, because it closes the pipe
  const bool not_started = read(failed.ends[0], &reason, sizeof reason) == sizeof reason;
  if (not_started) {
    outcome.why = std::strerror(reason);
  } else {
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return outcome;
}

}  // namespace backendgen
