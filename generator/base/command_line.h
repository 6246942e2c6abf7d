// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/console.h"

namespace backendgen {

/// An option of a command. `value` names what follows it ("DIR"); an option without one is a flag.
struct OptionSpec {
  std::string name;                       // "out", for --out
  std::string value;                      // "DIR", or empty
  std::string text;                       // its line in the help
  std::string letter = {};                // "h", for -h; often empty
  bool needed = false;                    // the command cannot do without
  std::vector<std::string> choices = {};  // the only values that it takes; empty: any
};

/// What a command takes.
struct CommandSpec {
  std::string name;  // "generate"
  /// "PATH", "[DESCRIPTION]" for one that may be left out, and last "WHEEL..." for one or more.
  std::vector<std::string> positional;
  std::string summary;  // "write the C++ and Python glue"
  std::vector<OptionSpec> options;
  std::vector<std::string> choices = {};  // the only values of the first argument; empty: any

  /// "backendgen new PATH [--name DEVICE]"
  std::string usage() const;
  bool takes_several() const;
};

/// A command line that was understood.
struct Arguments {
  std::map<std::string, std::string> values;  // by option name; a flag that is set has ""
  std::vector<std::string> positional;

  bool has(const std::string& option) const { return values.count(option) != 0; }
  /// The value of an option, or `otherwise`.
  std::string value(const std::string& option, const std::string& otherwise = {}) const;
  std::string at(std::size_t index) const;  // a positional argument, or ""
};

/// Options that every command takes: -C, --color, --help.
const std::vector<OptionSpec>& common_options();

/// Reads the words after the command's name. Reports what is wrong (with the nearest known option
/// and the usage line) and returns nothing.
std::optional<Arguments> parse(const CommandSpec& spec, const std::vector<std::string>& words,
                               Console& console);

}  // namespace backendgen
