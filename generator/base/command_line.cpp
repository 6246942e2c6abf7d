// SPDX-License-Identifier: Apache-2.0
#include "base/command_line.h"

#include <algorithm>

#include <fmt/format.h>
#include <cxxopts.hpp>

#include "base/suggest.h"
#include "base/text.h"

namespace backendgen {

namespace {

/// What cxxopts gives a flag that stands alone; no shell can pass it, so `--list=x` is told apart.
const std::string kSet("\0set", 4);

std::optional<Arguments> refuse(const CommandSpec& spec, Console& console, const std::string& error,
                                const std::string& help = {}) {
  console.error(error, help);
  console.line("usage: " + spec.usage());
  return std::nullopt;
}

std::vector<OptionSpec> all_options(const CommandSpec& spec) {
  std::vector<OptionSpec> all = spec.options;
  all.insert(all.end(), common_options().begin(), common_options().end());
  return all;
}

/// An option as it is typed: "--out", or "-C" for one without a long name.
std::string typed(const OptionSpec& option) {
  return option.name.size() == 1 ? "-" + option.name : "--" + option.name;
}

std::optional<Arguments> refuse_unknown(const CommandSpec& spec, Console& console,
                                        const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const OptionSpec& one : all_options(spec)) known.push_back(typed(one));
  const std::optional<std::string> near = nearest(option, known);
  return refuse(spec, console, fmt::format("unknown option `{}`", option),
                near ? fmt::format("did you mean `{}`?", *near) : "");
}

/// "unknown format `xml`" for a word that is not among the choices for what `name`, as in "FORMAT"
/// or "[SERVICE]", stands for.
std::optional<Arguments> refuse_choice(const CommandSpec& spec, Console& console, std::string name,
                                       const std::string& word,
                                       const std::vector<std::string>& choices) {
  std::erase_if(name, [](char letter) { return letter == '[' || letter == ']'; });
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; });
  const std::optional<std::string> near = nearest(word, choices);
  console.error(fmt::format("unknown {} {}", name, in_ticks(word)),
                near ? fmt::format("did you mean `{}`?", *near) : "",
                choices.size() == 1 ? fmt::format("the only {} is `{}`", name, choices.front())
                                    : fmt::format("the {}s are {}", name, enumerate(choices)));
  console.line("usage: " + spec.usage());
  return std::nullopt;
}

bool is_choice(const std::vector<std::string>& choices, const std::string& word) {
  return choices.empty() || word.empty() ||
         std::find(choices.begin(), choices.end(), word) != choices.end();
}

}  // namespace

std::string CommandSpec::usage() const {
  std::string text = "backendgen " + name;
  for (const std::string& argument : positional) text += " " + argument;
  for (const OptionSpec& option : options) {
    std::string words = "--" + option.name;
    if (!option.value.empty()) words += " " + option.value;
    text += option.needed ? " " + words : " [" + words + "]";
  }
  return text;
}

bool CommandSpec::takes_several() const {
  return !positional.empty() && positional.back().ends_with("...");
}

std::string Arguments::value(const std::string& option, const std::string& otherwise) const {
  const auto found = values.find(option);
  return found == values.end() ? otherwise : found->second;
}

std::string Arguments::at(std::size_t index) const {
  return index < positional.size() ? positional[index] : std::string();
}

const std::vector<OptionSpec>& common_options() {
  static const std::vector<OptionSpec> kCommon = {
      {"C", "DIR", "work as if started in DIR"},
      {"color", "WHEN", "auto, always or never", "", false, {"auto", "always", "never"}},
      {"help", "", "this text", "h"},
  };
  return kCommon;
}

std::optional<Arguments> parse(const CommandSpec& spec, const std::vector<std::string>& words,
                               Console& console) {
  const std::vector<OptionSpec> known = all_options(spec);
  cxxopts::Options options("backendgen");
  options.allow_unrecognised_options();
  for (const OptionSpec& option : known) {
    const auto value = cxxopts::value<std::string>();
    if (option.value.empty()) value->implicit_value(kSet);
    const std::string names =
        option.letter.empty() ? option.name : option.letter + "," + option.name;
    options.add_options()(names, option.text, value);
  }
  std::vector<const char*> argv = {"backendgen"};
  for (const std::string& word : words) argv.push_back(word.c_str());

  Arguments arguments;
  try {
    const cxxopts::ParseResult result = options.parse(static_cast<int>(argv.size()), argv.data());
    for (const OptionSpec& option : known) {
      if (result.count(option.name) > 1) {
        return refuse(spec, console, fmt::format("`{}` is given twice", typed(option)));
      }
      if (result.count(option.name) == 1) {
        arguments.values[option.name] = result[option.name].as<std::string>();
      }
    }
    arguments.positional = result.unmatched();
  } catch (const cxxopts::exceptions::missing_argument&) {
    const auto last = std::find_if(known.begin(), known.end(), [&](const OptionSpec& option) {
      return typed(option) == words.back() || "--" + option.name + "=" == words.back();
    });
    const std::string name = last == known.end() ? words.back() : typed(*last);
    return refuse(spec, console, fmt::format("`{}` needs a value", name));
  }

  for (const OptionSpec& option : known) {
    const auto found = arguments.values.find(option.name);
    if (found == arguments.values.end()) continue;
    if (!option.value.empty()) {
      if (!found->second.empty()) continue;
      return refuse(spec, console, fmt::format("`{}` needs a value", typed(option)));
    }
    if (found->second != kSet) {
      return refuse(spec, console, fmt::format("`{}` takes no value", typed(option)));
    }
    found->second.clear();
  }
  if (arguments.has("help")) return arguments;
  for (const std::string& word : arguments.positional) {
    if (word.size() > 1 && word.front() == '-') return refuse_unknown(spec, console, word);
  }
  if (arguments.positional.size() > spec.positional.size() && !spec.takes_several()) {
    return refuse(
        spec, console,
        fmt::format("unexpected argument `{}`", arguments.positional[spec.positional.size()]));
  }
  if (arguments.positional.size() < spec.positional.size()) {
    std::string missing = spec.positional[arguments.positional.size()];
    if (missing.front() != '[') {
      missing.resize(std::min(missing.size(), missing.find("...")));
      return refuse(spec, console, fmt::format("`{}` needs a {}", spec.name, missing));
    }
  }
  for (const OptionSpec& option : spec.options) {
    if (option.needed && arguments.value(option.name).empty()) {
      return refuse(spec, console,
                    fmt::format("`{}` needs `{} {}`", spec.name, typed(option), option.value));
    }
    if (!is_choice(option.choices, arguments.value(option.name))) {
      return refuse_choice(spec, console, option.value, arguments.value(option.name),
                           option.choices);
    }
  }
  if (!is_choice(spec.choices, arguments.at(0))) {
    return refuse_choice(spec, console, spec.positional.front(), arguments.at(0), spec.choices);
  }
  return arguments;
}

}  // namespace backendgen
