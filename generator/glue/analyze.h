// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/context.h"
#include "base/diagnostic.h"
#include "description/description.h"
#include "description/load.h"
#include "glue/project.h"
#include "torch/catalog.h"
#include "torch/install.h"

namespace backendgen {

/// What a description is judged by.
struct AnalyzeOptions {
  std::string torch;        // `--torch`: the folder or the release of PyTorch; may be empty
  std::string python;       // the Python whose PyTorch it is; empty: the default Python's
  bool needs_torch = true;  // look for PyTorch also where the description names no operators
  bool warns = true;        // of this machine and this PyTorch, besides what the text says
};

/// What is known of a description. It is without errors, and its model is complete, if `problems`
/// has no errors; else it is what could be read.
struct Analysis {
  Description description;
  std::optional<TorchInstall> torch;  // empty where none was found or none was needed
  GlueModel model;                    // empty without a PyTorch
  Diagnostics problems;
};

/// Judges what the description of `analysis` says of operators by its PyTorch, and models it.
void analyze_operators(Analysis& analysis, const Disk& disk);

/// Reads a description, finds PyTorch, judges the one by the other, and models the glue: all that a
/// command may say is wrong, in one run.
Analysis analyze(const OpenedDescription& opened, const AnalyzeOptions& options, Context& context);

}  // namespace backendgen
