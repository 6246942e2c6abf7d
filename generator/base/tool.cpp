// SPDX-License-Identifier: Apache-2.0
#include "base/tool.h"

#include <algorithm>

#include "base/templates.h"
#include "base/text.h"

namespace backendgen {

namespace {

constexpr std::string_view kFolder = "tools/backendkit_tools/";
constexpr std::string_view kEnding = ".py";

}  // namespace

Command tool_command(const std::string& python, const std::string& module,
                     const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const TemplateFile& file : templates_below(kFolder)) {
    std::string name(file.path.substr(kFolder.size()));
    if (!name.ends_with(kEnding)) continue;
    name.resize(name.size() - kEnding.size());
    names.push_back("backendkit_tools." + name);
    texts.emplace_back(file.text);
  }
  Command command;
  command.folder = folder;
  command.words = {python, "-c", std::string(find_template("tools/boot.py").text),
                   std::to_string(names.size())};
  for (const auto* more : {&names, &texts}) {
    command.words.insert(command.words.end(), more->begin(), more->end());
  }
  command.words.push_back(module);
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  return command;
}

Status show_tool(const Outcome& outcome, const std::string& unexpected, const Context& context) {
  Diagnostic problem;
  for (const std::string& line : lines_of(outcome.out)) {
    if (line.empty()) continue;
    const std::size_t tab = std::min(line.find('\t'), line.size());
    const std::string kind = line.substr(0, tab);
    const std::string text = line.substr(std::min(tab + 1, line.size()));
    if (kind == "error") {
      problem.message = text;
    } else if (kind == "help") {
      problem.help.push_back(text);
    } else if (kind == "note") {
      problem.notes.push_back(text);
    } else {
      context.console.status(kind, text);
    }
  }
  if (outcome.status == 0) return kDone;
  if (problem.message.empty()) {
    problem.message = unexpected;
    problem.notes = lines_of(outcome.err + outcome.why);
    std::erase(problem.notes, "");
  }
  context.console.report(problem);
  return kNo;
}

}  // namespace backendgen
