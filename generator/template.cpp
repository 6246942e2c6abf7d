// SPDX-License-Identifier: Apache-2.0
#include "template.h"

#include <algorithm>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>

namespace backendgen {

namespace {

namespace km = kainjow::mustache;

/// A context that refuses unknown names, where mustache would insert nothing.
class StrictContext : public km::context<std::string> {
 public:
  StrictContext(const km::data* data, const TemplateFile& file, std::set<std::string>* used)
      : km::context<std::string>(data), file_(file), used_(used) {}

  const km::data* get(const std::string& name) const override {
    const km::data* found = km::context<std::string>::get(name);
    if (found == nullptr) {
      throw InternalError(
          fmt::format("template {}:{}: unknown variable `{}`", file_.path, line_of(name), name));
    }
    if (used_ != nullptr) used_->insert(name);
    return found;
  }

  const km::data* get_partial(const std::string& name) const override { return get(name); }

 private:
  std::size_t line_of(const std::string& name) const {
    const std::size_t at = std::min(file_.text.find(name), file_.text.size());
    return 1 + static_cast<std::size_t>(std::count(
                   file_.text.begin(), file_.text.begin() + static_cast<long>(at), '\n'));
  }

  const TemplateFile& file_;
  std::set<std::string>* used_;
};

km::data as_data(const Values& values) {
  km::data data;
  for (const auto& [name, text] : values.texts) data.set(name, text);
  for (const auto& [name, shown] : values.sections) {
    data.set(name, shown ? km::data::type::bool_true : km::data::type::bool_false);
  }
  for (const auto& [name, items] : values.lists) {
    km::data list(km::data::type::list);
    for (const Values& item : items) list.push_back(as_data(item));
    data.set(name, std::move(list));
  }
  return data;
}

}  // namespace

std::string fill(const TemplateFile& file, const Values& values, std::set<std::string>* used) {
  km::mustache parsed{std::string(file.text)};
  if (!parsed.is_valid()) {
    throw InternalError(fmt::format("template {}: {}", file.path, parsed.error_message()));
  }
  parsed.set_custom_escape([](const std::string& text) { return text; });
  const km::data data = as_data(values);
  StrictContext context(&data, file, used);
  return parsed.render(context);
}

}  // namespace backendgen
