// SPDX-License-Identifier: Apache-2.0
#include "doctor/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/diagnostic.h"
#include "base/quote.h"
#include "base/text.h"
#include "base/utf8.h"

namespace backendgen {

namespace {

std::string_view word_of(Verdict verdict) {
  return verdict == Verdict::kGood ? "ok" : verdict == Verdict::kDoubtful ? "warn" : "fail";
}

std::size_t count(const std::vector<CheckRow>& rows, Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const CheckRow& row) { return row.verdict == verdict; }));
}

/// A text as a JSON string on one line.
std::string json(const std::string& text) {
  return quote(printable(text));
}

std::string row_json(const CheckRow& row) {
  std::vector<std::string> why;
  for (const std::string& line : row.why) why.push_back(json(line));
  return fmt::format(
      "    {{\n      \"status\": \"{}\",\n      \"check\": {},\n      \"subject\": {},\n"
      "      \"text\": {},\n      \"why\": [{}],\n      \"help\": {}\n    }}",
      word_of(row.verdict), json(row.check), json(row.subject), json(row.text),
      fmt::join(why, ", "), json(row.help));
}

}  // namespace

ToolRows read_tool_rows(const Outcome& outcome) {
  ToolRows result;
  for (const std::string& line : lines_of(outcome.out)) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(line, "\t")) parts.emplace_back(part);
    if (parts.size() == 5 && parts[0] == "row") {
      const Verdict verdict = parts[1] == "ok"     ? Verdict::kGood
                              : parts[1] == "warn" ? Verdict::kDoubtful
                                                   : Verdict::kBad;
      result.rows.push_back({verdict, parts[2], parts[3], parts[4], {}, {}});
    } else if (parts.size() == 2 && !result.rows.empty() && parts[0] == "why") {
      result.rows.back().why.push_back(parts[1]);
    } else if (parts.size() == 2 && !result.rows.empty() && parts[0] == "help") {
      result.rows.back().help = parts[1];
    } else if (parts.size() == 2 && parts[0] == "end") {
      result.complete = true;
    }
  }
  return result;
}

bool has_bad(const std::vector<CheckRow>& rows) {
  return count(rows, Verdict::kBad) != 0;
}

void show_rows(const std::vector<CheckRow>& rows, Console& console) {
  std::size_t width = 0;
  for (const CheckRow& row : rows) width = std::max(width, row.subject.size());
  for (const CheckRow& row : rows) {
    console.verdict(row.verdict, word_of(row.verdict),
                    fmt::format("{:<{}}  {}", row.subject, width, row.text));
    for (const std::string& line : row.why) {
      console.line(fmt::format("{:<{}}{}", "", width + 8, printable(line)));
    }
  }
  Diagnostic end;
  for (const CheckRow& row : rows) {
    if (!row.help.empty()) end.help.push_back(fmt::format("{}: {}", row.subject, row.help));
  }
  const std::size_t bad = count(rows, Verdict::kBad);
  const std::size_t doubtful = count(rows, Verdict::kDoubtful);
  const std::string plural = rows.size() == 1 ? "" : "s";
  if (bad != 0) {
    end.message = fmt::format("{} of {} check{} failed", bad, rows.size(), plural);
  } else if (doubtful != 0) {
    end.severity = Severity::kWarning;
    end.message =
        fmt::format("{} of {} check{} found something to look at", doubtful, rows.size(), plural);
  } else {
    return;
  }
  console.report(end);
}

std::string rows_json(const std::vector<CheckRow>& rows) {
  std::vector<std::string> all;
  for (const CheckRow& row : rows) all.push_back(row_json(row));
  return fmt::format(
      "{{\n  \"format\": 1,\n  \"backendgen\": {},\n  \"ok\": {},\n  \"rows\": [\n{}\n  ]\n}}\n",
      json(BACKENDGEN_VERSION), has_bad(rows) ? "false" : "true", fmt::join(all, ",\n"));
}

}  // namespace backendgen
