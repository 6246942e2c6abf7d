// SPDX-License-Identifier: Apache-2.0
#include "commands/man.h"

#include <fmt/format.h>

#include "glue/template.h"
#include "torch/install.h"

namespace backendgen {

namespace {

/// Text for roff: no letter of it is a request, and `-` can be copied into a shell.
std::string roff(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else if (letter == '\'') {
      result += "\\(aq";
    } else if (letter == '`') {
      result += "\\(ga";
    } else {
      result += letter;
    }
  }
  return text.starts_with('.') ? "\\&" + result : result;
}

Values option_entry(const OptionSpec& option) {
  std::string name = option.name.size() == 1 ? "-" + option.name : "--" + option.name;
  Values values;
  values.texts["letter"] = option.letter.empty() ? "" : roff("-" + option.letter) + ", ";
  values.texts["typed"] = roff(name);
  values.sections["has_value"] = !option.value.empty();
  values.texts["value"] = roff(option.value);
  values.texts["text"] = roff(option.text);
  return values;
}

}  // namespace

int run_man(const std::vector<CommandSpec>& commands, Context& context) {
  Values values;
  values.texts = {{"version", roff(BACKENDGEN_VERSION)},
                  {"date", BACKENDGEN_DATE},
                  {"oldest", oldest().minor_text()},
                  {"newest", newest_tested().minor_text()}};
  for (const CommandSpec& command : commands) {
    Values one;
    std::string usage = command.usage();
    usage.erase(0, usage.find(' ') + 1 + command.name.size());
    one.texts = {
        {"name", roff(command.name)}, {"rest", roff(usage)}, {"summary", roff(command.summary)}};
    one.lists["options"];
    for (const OptionSpec& option : command.options) {
      one.lists["options"].push_back(option_entry(option));
    }
    values.lists["commands"].push_back(std::move(one));
  }
  for (const OptionSpec& option : common_options()) {
    values.lists["common"].push_back(option_entry(option));
  }
  context.console.data(fill(find_template("shell/backendgen.1"), values));
  return kDone;
}

}  // namespace backendgen
