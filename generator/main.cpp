// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli.h"

using namespace backendgen;

namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// Colour on a terminal, unless NO_COLOR is set to something.
Colour colour_of_terminal() {
  const bool wanted = environment("NO_COLOR").value_or("").empty();
  return wanted && isatty(STDERR_FILENO) != 0 ? Colour::kAlways : Colour::kNever;
}

/// A file that is opened would get the number of a stdout that is closed, and what is printed would
/// go into that file. Where it is closed, a write to it still fails, and is reported.
void fill_closed_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) != -1) continue;
    // The lowest free number is this one.
    static_cast<void>(open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  RealDisk disk;
  RealProcess process;
  Console console(std::cout, std::cerr, colour_of_terminal());
  try {
    Context context{disk, process, console, std::filesystem::current_path(), environment};
    return run(std::vector<std::string>(argv + 1, argv + argc), context);
  } catch (const std::exception& error) {
    console.line(fmt::format("internal error: {}", error.what()));
    console.line(fmt::format("note: this is a fault in backendgen {}, not in your description",
                             BACKENDGEN_VERSION));
    return kInternal;
  }
}
