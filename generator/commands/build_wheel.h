// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/context.h"
#include "description/description.h"
#include "torch/install.h"

namespace backendgen {

/// A wheel of a project, before it is verified and put where it is wanted.
struct BuiltWheel {
  std::filesystem::path file;
  std::string python;  // the Python that built it, and that has the PyTorch it is for
  TorchVersion torch;
  std::filesystem::path symbols = {};  // the archive of the debug symbols, if one was wanted
};

/// What one build is of.
struct WheelBuild {
  std::filesystem::path project;  // the folder of setup.py
  std::filesystem::path folder;   // where the wheel goes; made, and emptied of files
  std::filesystem::path log;
  std::string python;
  TorchVersion torch;
  std::string position;        // "1 of 3"; empty for the only one
  bool debug_symbols = false;  // compile with debug information
};

/// A path for people: relative to where they are, when it lies below.
std::string shown(const std::filesystem::path& path, const Context& context);

/// Makes a folder and those above it; false, reported, when that fails.
bool make_folders(const std::filesystem::path& folder, Context& context);

/// Makes a folder and removes the files in it; false, reported, when it cannot be made.
bool empty_folder(const std::filesystem::path& folder, Context& context);

/// The only wheel in a folder; empty when there is none or more than one.
std::filesystem::path wheel_in(const std::filesystem::path& folder, const Disk& disk);

/// Builds the wheel through pip. What goes wrong is reported.
std::optional<BuiltWheel> build_wheel(const WheelBuild& build, const Description& description,
                                      Context& context);

/// Takes a wheel that CMake built: a copy of it in the build's folder. What goes wrong is reported.
std::optional<BuiltWheel> take_wheel(const WheelBuild& build, const std::filesystem::path& wheel,
                                     Context& context);

}  // namespace backendgen
