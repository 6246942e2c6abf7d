// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/disk.h"
#include "glue/project.h"

namespace backendgen {

/// How a planned file compares with the disk.
enum class State {
  kMissing,    // not there yet
  kUnchanged,  // there, byte for byte
  kOutdated,   // there, as generated earlier
  kEdited,     // there, and not as it was generated
  kSurplus,    // generated earlier, and not in the plan any more
};

struct Comparison {
  std::string path;  // relative, as in the plan
  State state;
  std::string current;  // the bytes on the disk, for kOutdated and kEdited
};

/// The name of the stamp in a folder of generated files: a line "HASH  PATH" for each of them, by
/// which a later run tells an edited file from one of an older description.
inline constexpr const char* kStampName = ".backendgen";

/// Compares a plan with the files in `folder`; without a stamp, any other file of a planned name
/// counts as edited. Adds an error, and returns nothing, when one can't be read.
std::optional<std::vector<Comparison>> compare(const Plan& plan,
                                               const std::filesystem::path& folder,
                                               const Disk& disk, Diagnostics& problems);

/// What lies in `folder` and is not backendgen's: neither named by the stamp nor as planned. Names
/// of files, and of folders with a "/" at the end; hidden ones and `__pycache__` do not count.
std::vector<std::string> find_foreign(const std::vector<Comparison>& comparisons,
                                      const std::filesystem::path& folder, const Disk& disk);

/// Removes what killed runs have left beside planned files. For a run that has the lock.
void remove_leftovers(const Plan& plan, const std::filesystem::path& folder, Disk& disk);

/// Brings the folder to the plan: writes every file that differs beside its place, then the stamp,
/// renames them all, and removes surplus files. Unchanged files keep their time. On failure adds an
/// error that names the path and returns false, and what was there is as it was.
bool write_generated(const Plan& plan, const std::vector<Comparison>& comparisons,
                     const std::filesystem::path& folder, Disk& disk, Diagnostics& problems);

/// Writes a plan into a folder that is empty or does not exist, without a stamp; same promise.
bool write_new(const Plan& plan, const std::filesystem::path& folder, Disk& disk,
               Diagnostics& problems);

}  // namespace backendgen
