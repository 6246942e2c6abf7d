// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

/// A fault in BackendKit itself, such as a template with an unknown variable: exit status 3.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A file of templates/, embedded in the program.
struct TemplateFile {
  std::string_view path;  // below templates/
  std::string_view text;
};

/// All embedded templates, by path.
std::span<const TemplateFile> templates();

/// The template with this path. Throws InternalError when there is none.
const TemplateFile& find_template(std::string_view path);

/// The templates below a folder, such as "python/common/".
std::span<const TemplateFile> templates_below(std::string_view folder);

}  // namespace backendgen
