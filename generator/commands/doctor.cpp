// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/tool.h"
#include "description/load.h"
#include "doctor/programs.h"
#include "doctor/report.h"
#include "glue/torch_option.h"
#include "torch/install.h"

namespace backendgen {

namespace {

constexpr int kDefaultTimeout = 10;
constexpr int kLongestTimeout = 3600;
constexpr std::chrono::seconds kToolLimit{60};  // the tool has shorter limits for what it starts

std::optional<int> seconds_of(const std::string& text) {
  if (text.empty()) return kDefaultTimeout;
  int seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [last, wrong] = std::from_chars(text.data(), end, seconds);
  if (wrong != std::errc() || last != end || seconds < 1 || seconds > kLongestTimeout) {
    return std::nullopt;
  }
  return seconds;
}

bool is_device_name(const std::string& name) {
  const std::string type = name.substr(0, name.find(':'));
  const std::string index = name.substr(std::min(type.size() + 1, name.size()));
  const auto only = [](const std::string& text, const char* allowed) {
    return text.find_first_not_of(allowed) == std::string::npos;
  };
  return !type.empty() && only(type, "abcdefghijklmnopqrstuvwxyz_") &&
         (name.size() == type.size() || (!index.empty() && only(index, "0123456789")));
}

CheckRow own_row() {
  return {Verdict::kGood,
          "backendgen",
          "backendgen",
          fmt::format("{}, tested with PyTorch {} to {}", BACKENDGEN_VERSION, oldest().minor_text(),
                      newest_tested().minor_text()),
          {},
          {}};
}

/// The row for a Python that cannot run the tool at all, or not to its end.
CheckRow python_row(const std::string& python, const Outcome& outcome) {
  CheckRow row{
      Verdict::kBad, "python", "python", "", {}, "name a Python that works: `--python EXE`"};
  if (outcome.status == -1) {
    row.text = fmt::format("cannot run `{}`: {}", python, outcome.why);
    row.help = "`apt-get install python3-venv`, or name a Python: `--python EXE`";
    return row;
  }
  if (outcome.timed_out) {
    row.text = fmt::format("the checks in `{}` did not end within their time", python);
  } else {
    row.text =
        fmt::format("the checks in `{}` ended early, with status {}", python, outcome.status);
  }
  std::vector<std::string> lines = lines_of(outcome.err);
  std::erase(lines, "");
  if (!lines.empty()) row.why = {lines.back()};
  return row;
}

int refuse_usage(Context& context, const std::string& message, const std::string& help) {
  context.refuse(message, help);
  return kUsage;
}

}  // namespace

int run_doctor(const DoctorOptions& options, Context& context) {
  const bool json = options.format == "json";
  if (!json && !options.format.empty() && options.format != "text") {
    return refuse_usage(context, "unknown format " + in_ticks(options.format),
                        "the formats are `text` and `json`");
  }
  const auto timeout = seconds_of(options.timeout);
  if (!timeout) {
    return refuse_usage(
        context, fmt::format("{} is not a number of seconds", in_ticks(options.timeout)),
        fmt::format("write a whole number from 1 to {}: `--timeout 30`", kLongestTimeout));
  }
  if (!options.timeout.empty() && !options.use_device) {
    return refuse_usage(context, "`--timeout` is for a device",
                        "name the device too: `--device foo`");
  }
  if (options.use_device && !is_device_name(options.device)) {
    return refuse_usage(context, fmt::format("{} is not a device", in_ticks(options.device)),
                        "write `--device foo` or `--device foo:1`");
  }
  const std::string python = options.python.empty() ? default_python(context) : options.python;
  const bool project = has_description(context);
  std::vector<CheckRow> rows = {own_row()};
  for (CheckRow& row : check_programs(python, project, context)) rows.push_back(std::move(row));

  Command command = tool_command(
      python, "doctor",
      {BACKENDGEN_VERSION, oldest().minor_text(), newest_tested().minor_text(), options.package,
       options.device, fmt::format("{}", *timeout), project ? "project" : "anywhere"},
      context.folder);
  // Without the user's site-packages and start-up code, which may be what is broken: the tool asks
  // a Python that has them.
  command.words.insert(command.words.begin() + 1, {"-I", "-S", "-X", "utf8"});
  command.limit = kToolLimit + (options.use_device ? 4 * std::chrono::seconds(*timeout)
                                                   : std::chrono::seconds(0));
  const Outcome outcome = context.process.run(command);
  ToolRows found = read_tool_rows(outcome);
  for (CheckRow& row : found.rows) rows.push_back(std::move(row));
  if (!found.complete) rows.push_back(python_row(python, outcome));

  if (json) {
    context.console.data(rows_json(rows));
  } else {
    show_rows(rows, context.console);
  }
  return has_bad(rows) ? kNo : kDone;
}

}  // namespace backendgen
