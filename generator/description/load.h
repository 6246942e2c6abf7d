// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/context.h"
#include "base/source.h"
#include "description/description.h"

namespace backendgen {

/// The text of a backend.toml, and where it was.
struct OpenedDescription {
  Source source;                 // its path is relative to the context's folder where it can be
  std::filesystem::path folder;  // of the description
};

/// A description without errors.
struct Loaded {
  Source source;
  Description description;
  std::filesystem::path folder;
};

/// Whether there is a backend.toml in the context's folder or above.
bool has_description(const Context& context);

/// Finds and reads a backend.toml: `argument` is the file, or its folder; when it is empty, the
/// nearest one in the context's folder or above. Reports what is wrong and returns nothing when
/// there is none, or it cannot be read, or is larger than a megabyte.
std::optional<OpenedDescription> open_description(const std::string& argument, Context& context);

/// The same, and reads the description in it. Reports all of its problems; warnings too.
std::optional<Loaded> load(const std::string& argument, Context& context);

}  // namespace backendgen
