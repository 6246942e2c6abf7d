// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/command_line.h"
#include "base/suggest.h"
#include "commands/check.h"
#include "commands/ci.h"
#include "commands/completion.h"
#include "commands/doctor.h"
#include "commands/generate.h"
#include "commands/man.h"
#include "commands/merge.h"
#include "commands/new.h"
#include "commands/ops.h"
#include "commands/schema.h"
#include "commands/wheel.h"
#include "torch/install.h"

namespace backendgen {

namespace {

struct Registered {
  CommandSpec spec;
  int (*run)(const Arguments&, Context&);
};

const OptionSpec kTorch = {"torch", "DIR",
                           "the PyTorch to work for: a folder, or a release such as 2.13"};
const OptionSpec kPython = {"python", "EXE", "the Python that builds; default: the active one"};

std::vector<CommandSpec> command_specs();

const std::vector<Registered>& commands() {
  static const std::vector<Registered> kCommands = {
      {{"new",
        {"PATH"},
        "start a project",
        {{"name", "DEVICE", "device name; default: the last part of PATH"},
         {"package", "NAME", "Python package; default: torch_DEVICE"},
         {"layout",
          "LAYOUT",
          "package (default) or submodule",
          "",
          false,
          {"package", "submodule"}}}},
       [](const Arguments& a, Context& context) {
         return run_new({a.at(0), a.value("name"), a.value("package"), a.value("layout")}, context);
       }},
      {{"check",
        {"[DESCRIPTION]"},
        "read backend.toml and report what is wrong with it",
        {kTorch,
         {"format",
          "FORMAT",
          "text (default), or json: the description on stdout",
          "",
          false,
          {"text", "json"}}}},
       [](const Arguments& a, Context& context) {
         return run_check({a.at(0), a.value("torch"), a.value("format")}, context);
       }},
      {{"generate",
        {"[DESCRIPTION]"},
        "write the C++ and Python glue",
        {{"out", "DIR", "the folder to write", "", true},
         kTorch,
         {"list", "", "print the files, write nothing"},
         {"check", "", "compare with the files there, write nothing"},
         {"force", "", "overwrite files that were edited"}}},
       [](const Arguments& a, Context& context) {
         return run_generate({a.at(0), a.value("out"), a.value("torch"), a.has("list"),
                              a.has("check"), a.has("force")},
                             context);
       }},
      {{"ops",
        {"[PATTERN]"},
        "look up PyTorch operators",
        {{"schema", "", "print schemas and C++ functions"},
         {"kernels", "", "only operators that have a kernel"},
         {"format",
          "FORMAT",
          "text (default), json, or html: a page for a browser",
          "",
          false,
          {"text", "json", "html"}},
         kTorch,
         {"stub", "OP", "begin a kernel for it; several with commas between"},
         {"since", "DIR", "what changed since that PyTorch: a folder, or a release"}}},
       [](const Arguments& a, Context& context) {
         return run_ops({a.at(0), a.has("schema"), a.has("kernels"), a.value("format"),
                         a.value("torch"), a.value("stub"), a.value("since")},
                        context);
       }},
      {{"wheel",
        {"[DESCRIPTION]"},
        "build a wheel and verify it",
        {{"out", "DIR", "where the wheel goes; default: dist"},
         kPython,
         {"from", "WHEEL", "one that CMake built, instead of building it with setup.py"},
         {"torch", "RELEASES", "one wheel for several releases of PyTorch, such as 2.12,2.13"},
         {"with-pip", "", "let pip get those that are not installed"},
         {"local-version", "", "a wheel for each release, with +torch2.13 in its version"},
         {"repair", "", "give it a manylinux tag, and bundle libraries as [wheel] says"},
         {"runtime", "", "only the wheel of the driver's libraries, as [wheel.runtime] says"},
         {"debug-symbols", "", "put the debug symbols into an archive beside the wheel"},
         {"no-smoke", "", "do not import the result"}}},
       [](const Arguments& a, Context& context) {
         WheelOptions options;
         options.description = a.at(0);
         options.out = a.value("out");
         options.python = a.value("python");
         options.smoke = !a.has("no-smoke");
         options.from = a.value("from");
         options.torch = a.value("torch");
         options.with_pip = a.has("with-pip");
         options.local_version = a.has("local-version");
         options.repair = a.has("repair");
         options.runtime = a.has("runtime");
         options.debug_symbols = a.has("debug-symbols");
         return run_wheel(options, context);
       }},
      {{"merge",
        {"WHEEL..."},
        "join wheels for several PyTorch releases",
        {{"out", "DIR", "where the wheel goes; default: dist"},
         {"python", "EXE", "the Python that joins them; default: the active one"}}},
       [](const Arguments& a, Context& context) {
         return run_merge({a.positional, a.value("out"), a.value("python")}, context);
       }},
      {{"doctor",
        {"[PACKAGE]"},
        "find out what is wrong with this machine and its backends",
        {{"python", "EXE", "the Python to look at; default: the active one"},
         {"device", "DEVICE", "also use this device, such as foo, in a process of its own"},
         {"timeout", "SECONDS", "the longest that the device may take; default: 10"},
         {"format", "FORMAT", "text (default), or json: every row on stdout"}}},
       [](const Arguments& a, Context& context) {
         return run_doctor({a.at(0), a.value("python"), a.value("device"), a.value("timeout"),
                            a.value("format"), a.has("device")},
                           context);
       }},
      {{"ci",
        {"SERVICE", "[DESCRIPTION]"},
        "print a CI file: github or gitlab",
        {{"torch", "RELEASES", "releases of PyTorch, such as 2.12.1,2.13.0; default: all tested"},
         {"nightly", "", "a weekly job with PyTorch's nightly build"},
         {"crcr", "", "the workflow that PyTorch's cross-repository CI relay starts"}},
        {"github", "gitlab"}},
       [](const Arguments& a, Context& context) {
         return run_ci({a.at(0), a.at(1), a.value("torch"), a.has("nightly"), a.has("crcr")},
                       context);
       }},
      {{"schema", {}, "print the JSON Schema of backend.toml, for editors", {}},
       [](const Arguments&, Context& context) { return run_schema(context); }},
      {{"completion",
        {"SHELL"},
        "print the completions of bash, zsh or fish",
        {},
        {"bash", "zsh", "fish"}},
       [](const Arguments& a, Context& context) {
         return run_completion(a.at(0), command_specs(), context);
       }},
      {{"man", {}, "print the manual page", {}},
       [](const Arguments&, Context& context) { return run_man(command_specs(), context); }},
  };
  return kCommands;
}

std::vector<CommandSpec> command_specs() {
  std::vector<CommandSpec> specs;
  for (const Registered& entry : commands()) specs.push_back(entry.spec);
  return specs;
}

const Registered* find_command(const std::string& name) {
  for (const Registered& entry : commands()) {
    if (entry.spec.name == name) return &entry;
  }
  return nullptr;
}

std::string head_of(const CommandSpec& spec) {
  std::string text = spec.name;
  for (const std::string& argument : spec.positional) text += " " + argument;
  return text;
}

std::string overview() {
  std::string text =
      "Turn a description of a device into a PyTorch backend.\n\n"
      "usage: backendgen COMMAND [options]\n\n";
  for (const Registered& entry : commands()) {
    text += fmt::format("  {:<24} {}\n", head_of(entry.spec), entry.spec.summary);
  }
  return text +
         "\n  -h, --help      help for a command      backendgen help generate\n"
         "  -V, --version   version of backendgen, and the PyTorch releases it was tested with\n"
         "  -C DIR          work as if started in DIR\n"
         "  --color WHEN    auto, always or never\n";
}

std::string manual(const CommandSpec& spec) {
  std::string text = fmt::format("{}: {}\n\nusage: {}\n\n", spec.name, spec.summary, spec.usage());
  const auto add = [&text](const OptionSpec& option) {
    std::string typed = option.name.size() == 1 ? "-" + option.name : "--" + option.name;
    if (!option.letter.empty()) typed = "-" + option.letter + ", " + typed;
    if (!option.value.empty()) typed += " " + option.value;
    text += fmt::format("  {:<20} {}\n", typed, option.text);
  };
  for (const OptionSpec& option : spec.options) add(option);
  for (const OptionSpec& option : common_options()) add(option);
  return text;
}

int refuse_command(Context& context, const std::string& name) {
  if (name.size() > 1 && name.front() == '-') {
    context.refuse(fmt::format("unknown option `{}`", name),
                   "`backendgen --help` lists the commands and options");
    return kUsage;
  }
  std::vector<std::string> names;
  for (const Registered& entry : commands()) names.push_back(entry.spec.name);
  const auto near = nearest(name, names);
  context.refuse(
      fmt::format("unknown command `{}`", name),
      near ? fmt::format("did you mean `{}`?", *near) : "`backendgen --help` lists the commands");
  return kUsage;
}

/// Takes -C and --color into account; false when one of them is wrong.
bool settle(const Arguments& arguments, Context& context) {
  const std::string colour = arguments.value("color", "auto");
  if (colour != "auto" && colour != "always" && colour != "never") {
    context.refuse(fmt::format("`--color` is `{}`", colour),
                   "write `--color auto`, `--color always` or `--color never`");
    return false;
  }
  if (colour != "auto") {
    context.console.use(colour == "always" ? Colour::kAlways : Colour::kNever);
  }
  if (!arguments.has("C")) return true;
  const std::string folder = arguments.value("C");
  context.folder = (context.folder / folder).lexically_normal();
  if (context.disk.look(context.folder) == Entry::kFolder) return true;
  context.refuse(fmt::format("`-C {}`: there is no such folder", folder));
  return false;
}

/// The place of the command among the words: the first that is neither an option nor the value of
/// an option that may stand before a command.
std::size_t command_place(const std::vector<std::string>& words) {
  std::size_t place = 0;
  while (place < words.size() && words[place].size() > 1 && words[place].front() == '-') {
    const bool takes_value = words[place] == "-C" || words[place] == "--color";
    const bool known =
        takes_value || words[place].starts_with("--color=") || words[place].starts_with("-C");
    if (!known) break;
    place += takes_value ? 2 : 1;
  }
  return std::min(place, words.size());
}

int dispatch(const std::vector<std::string>& words, Context& context) {
  const std::size_t place = command_place(words);
  const std::string name = place < words.size() ? words[place] : "";
  std::vector<std::string> rest(words.begin(), words.begin() + static_cast<long>(place));
  if (place < words.size()) {
    rest.insert(rest.end(), words.begin() + static_cast<long>(place) + 1, words.end());
  }
  if (name == "-V" || name == "--version") {
    context.console.data(fmt::format("backendgen {}\ntested with PyTorch {} to {}\n",
                                     BACKENDGEN_VERSION, oldest().minor_text(),
                                     newest_tested().minor_text()));
    return kDone;
  }
  if (place == words.size() || name == "-h" || name == "--help" ||
      (name == "help" && rest.empty())) {
    context.console.data(overview());
    return kDone;
  }
  if (name == "help") {
    const Registered* asked = find_command(rest.front());
    if (asked == nullptr) return refuse_command(context, rest.front());
    context.console.data(manual(asked->spec));
    return kDone;
  }
  const Registered* entry = find_command(name);
  if (entry == nullptr) return refuse_command(context, name);
  const auto arguments = parse(entry->spec, rest, context.console);
  if (!arguments) return kUsage;
  if (arguments->has("help")) {
    context.console.data(manual(entry->spec));
    return kDone;
  }
  if (!settle(*arguments, context)) return kUsage;
  return entry->run(*arguments, context);
}

}  // namespace

int run(const std::vector<std::string>& words, Context& context) {
  const int status = dispatch(words, context);
  const std::string& failure = context.console.failure();
  if (failure.empty()) return status;
  context.console.error("cannot write to stdout: " + failure);
  return status == kDone ? kNo : status;
}

}  // namespace backendgen
