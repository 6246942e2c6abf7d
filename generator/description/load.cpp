// SPDX-License-Identifier: Apache-2.0
#include "description/load.h"

#include <utility>

#include <fmt/format.h>

#include "description/read.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFileName = "backend.toml";
constexpr std::size_t kMostBytes = 1 << 20;

/// The description that an argument names; empty, with a report, when it names none.
std::optional<fs::path> find_named(const std::string& argument, Context& context) {
  const fs::path path = context.folder / argument;
  switch (context.disk.look(path)) {
    case Entry::kFile:
      return path;
    case Entry::kFolder:
      if (context.disk.look(path / kFileName) != Entry::kNothing) return path / kFileName;
      context.console.error(fmt::format("no {} in {}", kFileName, in_ticks(argument)),
                            "`backendgen new PATH` starts a project");
      return std::nullopt;
    case Entry::kNothing:
      context.console.error(in_ticks(argument) + " does not exist");
      return std::nullopt;
    case Entry::kOther:
      break;
  }
  context.console.error(in_ticks(argument) + " is not a file");
  return std::nullopt;
}

std::optional<fs::path> find_above(const Context& context) {
  for (fs::path folder = context.folder.lexically_normal();;) {
    if (context.disk.look(folder / kFileName) != Entry::kNothing) return folder / kFileName;
    const fs::path above = folder.parent_path();
    if (above == folder || folder.empty()) return std::nullopt;
    folder = above;
  }
}

/// The path as messages show it: as typed, or relative to where the user is.
std::string shown_path(const fs::path& path, const std::string& argument, const Context& context) {
  if (!argument.empty()) {
    const bool folder = path != context.folder / argument;
    return (folder ? fs::path(argument) / kFileName : fs::path(argument))
        .lexically_normal()
        .generic_string();
  }
  const fs::path relative = path.lexically_relative(context.folder.lexically_normal());
  return relative.empty() ? path.generic_string() : relative.generic_string();
}

}  // namespace

bool has_description(const Context& context) {
  return find_above(context).has_value();
}

std::optional<OpenedDescription> open_description(const std::string& argument, Context& context) {
  const auto path = argument.empty() ? find_above(context) : find_named(argument, context);
  if (!path) {
    if (!argument.empty()) return std::nullopt;
    context.console.error(
        fmt::format("no {} in {} or above it", kFileName, context.folder.generic_string()),
        "`backendgen new PATH` starts a project");
    return std::nullopt;
  }
  const std::string shown = shown_path(*path, argument, context);
  if (context.disk.look(*path) != Entry::kFile) {
    context.console.error(in_ticks(shown) + " is not a file");
    return std::nullopt;
  }
  auto text = context.disk.read(*path);
  if (!text) {
    context.console.error(fmt::format("cannot read {}: {}", in_ticks(shown), text.why()));
    return std::nullopt;
  }
  if (text->size() > kMostBytes) {
    context.console.error(in_ticks(shown) + " is larger than 1 MiB", "",
                          "a description of every operator of PyTorch has less");
    return std::nullopt;
  }
  return OpenedDescription{Source(shown, std::move(*text)), path->parent_path()};
}

std::optional<Loaded> load(const std::string& argument, Context& context) {
  auto opened = open_description(argument, context);
  if (!opened) return std::nullopt;
  Diagnostics problems;
  auto description = read_description(opened->source, problems);
  context.console.report(problems, opened->source);
  if (!description) return std::nullopt;
  return Loaded{std::move(opened->source), std::move(*description), std::move(opened->folder)};
}

}  // namespace backendgen
