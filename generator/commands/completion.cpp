// SPDX-License-Identifier: Apache-2.0
#include "commands/completion.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "glue/template.h"

namespace backendgen {

namespace {

/// What a shell offers for a value.
enum class Offer { kNothing, kWords, kFiles, kFolders, kPrograms };

/// By the word that stands for the value in the help: "DIR", or "[DESCRIPTION]".
Offer offer_for(const std::string& name, const std::vector<std::string>& choices) {
  if (!choices.empty()) return Offer::kWords;
  const auto is = [&name](std::string_view part) { return name.find(part) != name.npos; };
  if (is("DIR") || is("FOLDER")) return Offer::kFolders;
  if (is("EXE") || is("PYTHON")) return Offer::kPrograms;
  if (is("DESCRIPTION") || is("PATH") || is("FILE") || is("WHEEL")) return Offer::kFiles;
  return Offer::kNothing;
}

std::string typed(const OptionSpec& option) {
  return option.name.size() == 1 ? "-" + option.name : "--" + option.name;
}

std::string escaped(std::string_view text, std::string_view letters) {
  std::string result;
  for (const char letter : text) {
    if (letters.find(letter) != letters.npos) result += '\\';
    result += letter;
  }
  return result;
}

/// The inside of a text in single quotes, as bash and zsh take it.
std::string in_quotes(std::string_view text) {
  std::string result;
  for (const char letter : text) result += letter == '\'' ? "'\\''" : std::string(1, letter);
  return result;
}

/// The arguments of a command, "..." for one that may be repeated, and what is offered for each.
struct Argument {
  std::string name;
  bool optional = false;
  bool repeated = false;
  Offer offer = Offer::kNothing;
};

std::vector<Argument> arguments_of(const CommandSpec& command) {
  std::vector<Argument> result;
  for (const std::string& written : command.positional) {
    Argument argument;
    argument.optional = written.find('[') != written.npos;
    argument.repeated = written.find("...") != written.npos;
    for (const char letter : written) {
      if (letter != '[' && letter != ']' && letter != '.') argument.name += letter;
    }
    const bool first = result.empty();
    argument.offer = offer_for(argument.name, first ? command.choices : std::vector<std::string>());
    result.push_back(argument);
  }
  return result;
}

std::vector<OptionSpec> options_of(const CommandSpec& command) {
  std::vector<OptionSpec> options = command.options;
  options.insert(options.end(), common_options().begin(), common_options().end());
  return options;
}

/// A function call of completion.bash.
std::string bash_offer(Offer offer, const std::vector<std::string>& choices) {
  switch (offer) {
    case Offer::kNothing:
      return ":";
    case Offer::kWords:
      return fmt::format("_backendgen_words '{}'", fmt::join(choices, " "));
    case Offer::kFiles:
      return "_backendgen_paths -f";
    case Offer::kFolders:
      return "_backendgen_paths -d";
    case Offer::kPrograms:
      return "_backendgen_programs";
  }
  return ":";
}

/// ":NAME:action" of zsh's _arguments.
std::string zsh_offer(const std::string& name, Offer offer,
                      const std::vector<std::string>& choices) {
  std::string action = " ";
  if (offer == Offer::kWords) action = fmt::format("({})", fmt::join(choices, " "));
  if (offer == Offer::kFiles) action = "_files";
  if (offer == Offer::kFolders) action = "_files -/";
  if (offer == Offer::kPrograms) action = "_command_names -e";
  return fmt::format(":{}:{}", name, action);
}

/// The end of a line of fish's `complete`.
std::string fish_offer(Offer offer, const std::vector<std::string>& choices) {
  switch (offer) {
    case Offer::kNothing:
      return "-f";
    case Offer::kWords:
      return fmt::format("-f -a '{}'", fmt::join(choices, " "));
    case Offer::kFiles:
      return "-F";
    case Offer::kFolders:
      return "-f -a '(__fish_complete_directories)'";
    case Offer::kPrograms:
      return "-F -a '(__fish_complete_command)'";
  }
  return "-f";
}

Values option_values(const OptionSpec& option) {
  const Offer offer = offer_for(option.value, option.choices);
  Values values;
  values.sections["takes_value"] = !option.value.empty();
  values.texts["typed"] = typed(option);
  values.texts["bash_offer"] = bash_offer(offer, option.choices);
  // "--out=", a value that follows `=` or is the next word; "-C+", one that may also be joined.
  const std::string join = option.value.empty() ? "" : option.name.size() == 1 ? "+" : "=";
  std::string zsh = fmt::format("{}{}[{}]", typed(option), join, escaped(option.text, "\\[]:"));
  if (!option.letter.empty()) {
    zsh = fmt::format("(-{0} {1}){{-{0},{1}}}[{2}]", option.letter, typed(option),
                      escaped(option.text, "\\[]:"));
  }
  if (!option.value.empty()) zsh += zsh_offer(option.value, offer, option.choices);
  zsh = in_quotes(zsh);
  // Braces are expanded outside quotes only.
  if (const std::size_t open = zsh.find('{'); !option.letter.empty() && open != zsh.npos) {
    const std::size_t close = zsh.find('}', open);
    zsh = zsh.substr(0, open) + "'" + zsh.substr(open, close - open + 1) + "'" +
          zsh.substr(close + 1);
  }
  values.texts["zsh"] = "'" + zsh + "'";
  std::string fish = option.name.size() == 1 ? "-s " + option.name : "-l " + option.name;
  if (!option.letter.empty()) fish += " -s " + option.letter;
  fish += fmt::format(" -d '{}'", escaped(option.text, "\\'"));
  if (!option.value.empty()) fish += " -r " + fish_offer(offer, option.choices);
  values.texts["fish"] = fish;
  return values;
}

Values command_values(const CommandSpec& command) {
  Values values;
  values.texts["name"] = command.name;
  values.texts["zsh_summary"] = in_quotes(escaped(command.summary, "\\:"));
  values.texts["fish_summary"] = escaped(command.summary, "\\'");
  std::string flags;
  for (const OptionSpec& option : options_of(command)) {
    values.lists["options"].push_back(option_values(option));
    flags += (flags.empty() ? "" : " ") + typed(option);
  }
  values.texts["flags"] = flags;
  values.lists["arguments"];
  std::size_t place = 0;
  for (const Argument& argument : arguments_of(command)) {
    const auto& choices = place == 0 ? command.choices : std::vector<std::string>();
    Values one;
    one.texts["place"] = argument.repeated ? "*" : std::to_string(place);
    one.texts["bash_offer"] = bash_offer(argument.offer, choices);
    one.texts["zsh"] = fmt::format("'{}{}'",
                                   argument.repeated   ? "*"
                                   : argument.optional ? ":"
                                                       : "",
                                   zsh_offer(argument.name, argument.offer, choices));
    one.texts["fish_offer"] = fish_offer(argument.offer, choices);
    one.texts["fish_place"] = argument.repeated ? fmt::format("{}+", place) : std::to_string(place);
    values.lists["arguments"].push_back(std::move(one));
    ++place;
  }
  return values;
}

}  // namespace

int run_completion(const std::string& shell, const std::vector<CommandSpec>& commands,
                   Context& context) {
  Values values;
  std::vector<std::string> names;
  for (const CommandSpec& command : commands) {
    names.push_back(command.name);
    values.lists["commands"].push_back(command_values(command));
  }
  for (const OptionSpec& option : common_options()) {
    if (option.name != "help") values.lists["leading"].push_back(option_values(option));
  }
  values.texts["names"] = fmt::format("{}", fmt::join(names, " "));
  context.console.data(fill(find_template("shell/completion." + shell), values));
  return kDone;
}

}  // namespace backendgen
