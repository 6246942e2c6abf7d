// SPDX-License-Identifier: Apache-2.0
#include "glue/template.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>

namespace backendgen {

namespace {

namespace km = kainjow::mustache;

/// What mustache looks names up in. Texts become its own values only when they are asked for, which
/// is much quicker than to copy all of them first; an unknown name, for which mustache would insert
/// nothing, is refused.
class ValuesContext : public km::basic_context<std::string> {
 public:
  ValuesContext(const Values& values, const TemplateFile& file, std::set<std::string>* used)
      : file_(file), used_(used), stack_{&values} {}

  /// Enters an item of a list, or a section that is shown.
  void push(const km::data* data) override {
    const Values* item = nullptr;
    for (const auto& [values, list] : lists_) {
      const auto& items = list->list_value();
      if (data >= items.data() && data < items.data() + items.size()) {
        item = &(*values)[static_cast<std::size_t>(data - items.data())];
      }
    }
    stack_.push_back(item);
  }

  void pop() override { stack_.pop_back(); }

  const km::data* get(const std::string& name) const override {
    if (used_ != nullptr) used_->insert(name);
    for (auto one = stack_.rbegin(); one != stack_.rend(); ++one) {
      if (*one == nullptr) continue;
      if (const km::data* found = find(**one, name)) return found;
    }
    throw InternalError(
        fmt::format("template {}:{}: unknown variable `{}`", file_.path, line_of(name), name));
  }

  const km::data* get_partial(const std::string& name) const override { return get(name); }

 private:
  const km::data* find(const Values& values, const std::string& name) const {
    if (const std::string* text = values.texts.find(name)) {
      text_ = km::data(*text);
      return &text_;
    }
    if (const bool* shown = values.sections.find(name)) {
      static const km::data kShown(true);
      static const km::data kHidden(false);
      return *shown ? &kShown : &kHidden;
    }
    const std::vector<Values>* list = values.lists.find(name);
    if (list == nullptr) return nullptr;
    for (const auto& [known, data] : lists_) {
      if (known == list) return data.get();
    }
    // Mustache asks for no more of an item than that it is there.
    km::list items(list->size(), km::data(true));
    lists_.emplace_back(list, std::make_unique<const km::data>(std::move(items)));
    return lists_.back().second.get();
  }

  std::size_t line_of(const std::string& name) const {
    const std::size_t at = std::min(file_.text.find(name), file_.text.size());
    return 1 + static_cast<std::size_t>(std::count(
                   file_.text.begin(), file_.text.begin() + static_cast<long>(at), '\n'));
  }

  const TemplateFile& file_;
  std::set<std::string>* used_;
  std::vector<const Values*> stack_;
  mutable km::data text_;  // the last one that was asked for
  mutable std::vector<std::pair<const std::vector<Values>*, std::unique_ptr<const km::data>>>
      lists_;
};

/// The stream that mustache writes to; quicker than std::ostringstream, which copies all at the
/// end.
struct Output {
  std::string text;

  Output& operator<<(const std::string& part) {
    text += part;
    return *this;
  }
};

}  // namespace

struct ParsedTemplate::Data {
  km::mustache parsed;
};

ParsedTemplate::ParsedTemplate(const TemplateFile& file)
    : file_(file), data_(std::make_unique<Data>(Data{km::mustache(std::string(file.text))})) {
  if (!data_->parsed.is_valid()) {
    throw InternalError(fmt::format("template {}: {}", file.path, data_->parsed.error_message()));
  }
  data_->parsed.set_custom_escape([](const std::string& text) { return text; });
}

ParsedTemplate::~ParsedTemplate() = default;

std::string ParsedTemplate::fill(const Values& values, std::set<std::string>* used) const {
  ValuesContext context(values, file_, used);
  Output output;
  return std::move(data_->parsed.render(context, output).text);
}

std::string fill(const TemplateFile& file, const Values& values, std::set<std::string>* used) {
  return ParsedTemplate(file).fill(values, used);
}

}  // namespace backendgen
