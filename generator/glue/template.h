// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/by_name.h"
#include "base/templates.h"

namespace backendgen {

/// What a template may name. Texts are inserted as they are: whoever fills them has made them safe
/// for the template's language. A section is shown or not; a list repeats its section for each
/// item.
struct Values {
  ByName<std::string> texts;
  ByName<bool> sections;
  ByName<std::vector<Values>> lists;
};

/// A template that was parsed, to be filled in more than once.
class ParsedTemplate {
 public:
  /// Throws InternalError for a template that is not well-formed.
  explicit ParsedTemplate(const TemplateFile& file);
  ~ParsedTemplate();
  ParsedTemplate(const ParsedTemplate&) = delete;
  ParsedTemplate& operator=(const ParsedTemplate&) = delete;

  /// As the function `fill`; on several threads at once, if they do not share `used`.
  std::string fill(const Values& values, std::set<std::string>* used = nullptr) const;

 private:
  struct Data;

  const TemplateFile& file_;
  std::unique_ptr<Data> data_;
};

/// Fills in a mustache template. Throws InternalError with file and line for a template that is not
/// well-formed or names something `values` lacks. Adds every name it met to `used`, if given.
std::string fill(const TemplateFile& file, const Values& values,
                 std::set<std::string>* used = nullptr);

}  // namespace backendgen
