// SPDX-License-Identifier: Apache-2.0
#include "torch/install.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/templates.h"

namespace backendgen {

namespace {

std::optional<std::string_view> line_after(std::string_view text, std::string_view start) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(start)) return line.substr(start.size());
    at = end + 1;
  }
  return std::nullopt;
}

/// The value of `__version__ = '2.13.0+cpu'` in torch/version.py.
std::optional<std::string_view> version_line(std::string_view text) {
  auto value = line_after(text, "__version__ = ");
  if (!value || value->size() < 2) return std::nullopt;
  const char quote = value->front();
  const std::size_t end = value->find(quote, 1);
  if ((quote != '\'' && quote != '"') || end == std::string_view::npos) return std::nullopt;
  return value->substr(1, end - 1);
}

bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

void skip_spaces(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
}

/// The last line that Python wrote about what went wrong.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

/// The list of operators beside the folder `torch`: in an installation, or in a source tree that
/// PyTorch was built in.
std::optional<std::filesystem::path> find_operators(const std::filesystem::path& folder,
                                                    const Disk& disk) {
  const std::filesystem::path native = std::filesystem::path("ATen") / "native";
  for (const auto& place : {std::filesystem::path("torchgen") / "packaged" / native,
                            std::filesystem::path("aten") / "src" / native}) {
    auto path = folder.parent_path() / place / "native_functions.yaml";
    if (disk.look(path) == Entry::kFile) return path;
  }
  return std::nullopt;
}

}  // namespace

std::string TorchVersion::text() const {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::string TorchVersion::minor_text() const {
  return fmt::format("{}.{}", major, minor);
}

std::optional<TorchVersion> TorchVersion::parse(std::string_view text) {
  TorchVersion version;
  if (!take_number(text, version.major) || !take(text, ".") || !take_number(text, version.minor)) {
    return std::nullopt;
  }
  if (take(text, ".") && !take_number(text, version.patch)) return std::nullopt;
  return version;
}

std::optional<TorchInstall> open_torch(const std::filesystem::path& folder, const Disk& disk,
                                       Diagnostics& problems) {
  const std::string shown = folder.generic_string();
  if (disk.look(folder) != Entry::kFolder) {
    problems.error(fmt::format("`{}` is not a folder", shown))
        .notes.push_back("it should be the folder `torch` of a PyTorch installation");
    return std::nullopt;
  }
  const auto text = disk.read(folder / "version.py");
  if (!text) {
    problems
        .error(fmt::format("no PyTorch in `{}`: cannot read `version.py`: {}", shown, text.why()))
        .notes.push_back("it should be the folder `torch` of a PyTorch installation");
    return std::nullopt;
  }
  const auto line = version_line(*text);
  const auto version = line ? TorchVersion::parse(*line) : std::nullopt;
  if (!version) {
    problems.error(fmt::format("no PyTorch in `{}`: its `version.py` has no version", shown));
    return std::nullopt;
  }
  if (*version < oldest()) {
    problems
        .error(fmt::format("needs PyTorch {} or newer, found {} in `{}`", oldest().minor_text(),
                           *line, shown))
        .help.push_back("`python -m pip install --upgrade torch`");
    return std::nullopt;
  }
  auto operators = find_operators(folder, disk);
  if (!operators) {
    problems.error(fmt::format("PyTorch in `{}` has no list of its operators", shown))
        .notes.push_back("it comes with `torchgen`, which should lie beside the folder `torch`");
    return std::nullopt;
  }
  return TorchInstall{folder, std::move(*operators), *version};
}

std::optional<TorchInstall> find_torch(const std::string& python, const Disk& disk,
                                       Process& process, Diagnostics& problems) {
  const Outcome outcome =
      process.run({{python, "-c", std::string(find_template("find_torch.py").text)}, {}, {}, {}});
  if (outcome.status == -1) {
    problems.error(fmt::format("cannot run `{}`: {}", python, outcome.why));
    return std::nullopt;
  }
  if (outcome.status != 0) {
    Diagnostic& error =
        problems.error(fmt::format("`{}` failed with status {}", python, outcome.status));
    if (!outcome.err.empty()) error.notes.push_back(last_line(outcome.err));
    return std::nullopt;
  }
  const auto folder = line_after(outcome.out, "torch is in ");
  if (!folder) {
    problems.error(fmt::format("found no PyTorch in `{}`", python))
        .help.push_back(fmt::format("`{} -m pip install torch`", python));
    return std::nullopt;
  }
  return open_torch(std::filesystem::path(*folder), disk, problems);
}

TorchVersion oldest() {
  return *TorchVersion::parse(BACKENDGEN_OLDEST_TORCH);
}

void warn_if_newer(const TorchInstall& torch, Diagnostics& problems) {
  const TorchVersion& version = torch.version;
  const TorchVersion newest = newest_tested();
  if (TorchVersion{version.major, version.minor, 0} <= newest) return;
  Diagnostic& warning = problems.warning(
      fmt::format("PyTorch {} is newer than {}, the newest release that this BackendKit was tested "
                  "with",
                  version.text(), newest.minor_text()));
  warning.notes.push_back("the glue may not compile with it, or may not work completely");
  warning.help.push_back("`python -m pip install --upgrade backendkit`");
}

bool admits(std::string_view requirement, const TorchVersion& version) {
  for (;;) {
    skip_spaces(requirement);
    const bool at_least = take(requirement, ">=");
    const bool at_most = !at_least && take(requirement, "<=");
    const bool equal = !at_least && !at_most && take(requirement, "==");
    const bool other = !at_least && !at_most && !equal && take(requirement, "!=");
    const bool above = !at_least && !at_most && !equal && !other && take(requirement, ">");
    const bool below =
        !at_least && !at_most && !equal && !other && !above && take(requirement, "<");
    skip_spaces(requirement);
    const std::string_view rest = requirement;
    const std::size_t comma = rest.find(',');
    const auto bound = TorchVersion::parse(rest.substr(0, comma));
    if (!bound) return false;
    const bool holds = at_least  ? version >= *bound
                       : at_most ? version <= *bound
                       : equal   ? version == *bound
                       : other   ? version != *bound
                       : above   ? version > *bound
                                 : below && version < *bound;
    if (!holds) return false;
    if (comma == std::string_view::npos) return true;
    requirement.remove_prefix(comma + 1);
  }
}

}  // namespace backendgen
