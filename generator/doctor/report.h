// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/console.h"
#include "base/process.h"

namespace backendgen {

/// The result of one check. Texts are as they came, and may hold anything.
struct CheckRow {
  Verdict verdict = Verdict::kGood;
  std::string check;             // what was checked, for programs: "torch.release"
  std::string subject;           // what was found good or bad: "torch", "torch_foo"
  std::string text;              // what is so: "2.13.0, CPU, in ..."
  std::vector<std::string> why;  // facts that explain it, a line each
  std::string help;              // one thing to do about it; empty for a good row
};

/// The rows that the tool `doctor` printed, a line each with tabs between: "row", verdict, check,
/// subject, text, and after it lines "why" and "help". Anything else that is printed there, by code
/// that runs when Python starts, is skipped. `complete` says whether the tool reached its end.
struct ToolRows {
  std::vector<CheckRow> rows;
  bool complete = false;
};
ToolRows read_tool_rows(const Outcome& outcome);

/// Whether any row is bad.
bool has_bad(const std::vector<CheckRow>& rows);

/// All rows for people, aligned, and what to do.
void show_rows(const std::vector<CheckRow>& rows, Console& console);

/// All rows as JSON; docs/doctor.md describes it.
std::string rows_json(const std::vector<CheckRow>& rows);

}  // namespace backendgen
