// SPDX-License-Identifier: Apache-2.0
#include "torch/native_functions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <yaml.h>

#include <fmt/format.h>

#include "base/text.h"
#include "torch/schema.h"

namespace backendgen {

namespace {

/// libyaml's stream of events, one at a time. The current event stays valid until the next.
class Events {
 public:
  Events(const Source& source, Diagnostics& problems) : source_(source), problems_(problems) {
    if (yaml_parser_initialize(&parser_) == 0) {
      failed_ = true;
      problems_.error("out of memory");
      return;
    }
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_,
                                 reinterpret_cast<const unsigned char*>(source.text().data()),
                                 source.text().size());
  }
  ~Events() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// The type of the next event; YAML_NO_EVENT when the text is no YAML, which is an error.
  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    event_.type = YAML_NO_EVENT;
    if (failed_) return YAML_NO_EVENT;
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      failed_ = true;
      const char* problem = parser_.problem == nullptr ? "unreadable" : parser_.problem;
      const std::size_t at = parser_.error == YAML_READER_ERROR
                                 ? parser_.problem_offset
                                 : offset(parser_.problem_mark.index);
      problems_.error(fmt::format("not YAML: {}", problem), source_.span(at, at + 1));
      return YAML_NO_EVENT;
    }
    return event_.type;
  }

  yaml_event_type_t type() const { return event_.type; }

  std::string_view scalar() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }

  Span span() {
    const std::size_t begin = offset(event_.start_mark.index);
    return source_.span(begin, offset(event_.end_mark.index));
  }

  /// Skips the rest of the value whose first event is the current one.
  bool skip() {
    int depth = 0;
    do {
      if (type() == YAML_MAPPING_START_EVENT || type() == YAML_SEQUENCE_START_EVENT) ++depth;
      if (type() == YAML_MAPPING_END_EVENT || type() == YAML_SEQUENCE_END_EVENT) --depth;
      if (depth == 0) return true;
    } while (next() != YAML_NO_EVENT);
    return false;
  }

  Diagnostics& problems() { return problems_; }

 private:
  /// Where a character is in the source. libyaml counts characters, and lines by YAML's rules,
  /// which end them at more than "\n".
  std::size_t offset(std::size_t index) {
    const std::string& text = source_.text();
    const auto within = [&] { return (text[offset_] & 0xC0) == 0x80; };
    for (; index_ < index && offset_ < text.size(); ++index_) {
      do ++offset_;
      while (offset_ < text.size() && within());
    }
    for (; index_ > index; --index_) {
      do --offset_;
      while (within());
    }
    return offset_;
  }

  const Source& source_;
  Diagnostics& problems_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::size_t index_ = 0;   // of a character near the current event,
  std::size_t offset_ = 0;  // and where it begins
  bool failed_ = false;
};

/// The three kinds of value that entries have. Each reads the value whose first event is current;
/// false after an error.
bool read_text(Events& events, std::string_view key, std::string& text) {
  if (events.type() != YAML_SCALAR_EVENT) {
    events.problems().error(fmt::format("`{}` is no text", key), events.span());
    return false;
  }
  text = events.scalar();
  return true;
}

bool read_flag(Events& events, std::string_view key, bool& flag) {
  std::string text;
  if (!read_text(events, key, text)) return false;
  flag = text == "True" || text == "true";
  if (flag || text == "False" || text == "false") return true;
  events.problems().error(fmt::format("`{}` is neither `True` nor `False`", key), events.span());
  return false;
}

/// The keys of a dispatch table ("CPU, CUDA: add_stub"); its values are kernels of PyTorch's own.
bool read_dispatch(Events& events, NativeFunction& function) {
  if (events.type() != YAML_MAPPING_START_EVENT) {
    events.problems().error("`dispatch` is no table", events.span());
    return false;
  }
  function.has_dispatch = true;
  while (events.next() != YAML_MAPPING_END_EVENT) {
    std::string keys;
    if (events.type() == YAML_NO_EVENT || !read_text(events, "dispatch", keys)) return false;
    for (const std::string& word : split_list(keys)) {
      function.composite_implicit |= word == "CompositeImplicitAutograd";
      function.composite_explicit |=
          word == "CompositeExplicitAutograd" || word == "CompositeExplicitAutogradNonFunctional";
      function.on_cpu |= word == "CPU";
      if (!function.dispatch.empty()) function.dispatch += ", ";
      function.dispatch += word;
    }
    if (events.next() == YAML_NO_EVENT || !events.skip()) return false;
  }
  return true;
}

/// One text, or a list of them.
bool read_texts(Events& events, std::string_view key, std::vector<std::string>& texts) {
  const bool list = events.type() == YAML_SEQUENCE_START_EVENT;
  if (list) events.next();
  while (events.type() != YAML_SEQUENCE_END_EVENT) {
    std::string text;
    if (events.type() == YAML_NO_EVENT || !read_text(events, key, text)) return false;
    texts.push_back(std::move(text));
    if (!list) return true;
    events.next();
  }
  return true;
}

bool read_tags(Events& events, NativeFunction& function) {
  std::vector<std::string> tags;
  if (!read_texts(events, "tags", tags)) return false;
  for (const std::string& tag : tags) {
    function.core |= tag == "core";
    function.pointwise |= tag == "pointwise";
    function.inplace_view |= tag == "inplace_view";
  }
  return true;
}

bool read_value(Events& events, const std::string& key, NativeFunction& function) {
  if (key == "func") {
    function.span = events.span();
    return read_text(events, key, function.func);
  }
  if (key == "dispatch") return read_dispatch(events, function);
  if (key == "ufunc_inner_loop") {  // torchgen writes the kernels of both
    function.on_cpu = true;
    function.dispatch += function.dispatch.empty() ? "CPU, CUDA" : ", CPU, CUDA";
    return events.skip();
  }
  if (key == "structured") {
    bool structured = false;
    if (!read_flag(events, key, structured)) return false;
    function.structured |= structured;
    return true;
  }
  if (key == "structured_delegate") {
    function.structured = true;
    return read_text(events, key, function.delegate);
  }
  if (key == "structured_inherits") {
    std::string base;
    if (!read_text(events, key, base)) return false;
    function.tensor_iterator = base == "TensorIteratorBase";
    return true;
  }
  if (key == "precomputed") return read_texts(events, key, function.precomputed);
  if (key == "device_check") {
    std::string check;
    if (!read_text(events, key, check)) return false;
    function.device_check = check != "NoCheck";
    return true;
  }
  if (key == "use_const_ref_for_mutable_tensors") {
    return read_flag(events, key, function.const_ref_for_mutable);
  }
  if (key == "tags") return read_tags(events, function);
  if (key == "autogen") {
    std::string names;
    if (!read_text(events, key, names)) return false;
    function.autogen = split_list(names);
    return true;
  }
  return events.skip();
}

bool read_entry(Events& events, std::vector<NativeFunction>& functions) {
  if (events.type() != YAML_MAPPING_START_EVENT) {
    events.problems().error("expected a table with the key `func`", events.span());
    return false;
  }
  NativeFunction function;
  const Span start = events.span();
  std::string key;
  while (events.next() != YAML_MAPPING_END_EVENT) {
    if (events.type() == YAML_NO_EVENT) return false;
    if (events.type() != YAML_SCALAR_EVENT) {
      events.problems().error("expected a key", events.span());
      return false;
    }
    key = events.scalar();
    if (events.next() == YAML_NO_EVENT || !read_value(events, key, function)) return false;
  }
  if (!function.span.known()) {
    events.problems().error("an entry has no `func`", start);
    return false;
  }
  functions.push_back(std::move(function));
  return true;
}

constexpr std::string_view kUsual = "- func: ";
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

}  // namespace

std::optional<std::vector<NativeFunction>> read_native_functions(const Source& source,
                                                                 Diagnostics& problems) {
  Events events(source, problems);
  if (events.next() == YAML_NO_EVENT) return std::nullopt;  // start of the stream
  if (events.next() == YAML_NO_EVENT) return std::nullopt;  // start of the document
  if (events.type() == YAML_STREAM_END_EVENT) {
    problems.error("the list of operators is empty");
    return std::nullopt;
  }
  if (events.next() != YAML_SEQUENCE_START_EVENT) {
    if (events.type() != YAML_NO_EVENT) problems.error("expected a list", events.span());
    return std::nullopt;
  }
  std::vector<NativeFunction> functions;
  while (events.next() != YAML_SEQUENCE_END_EVENT) {
    if (events.type() == YAML_NO_EVENT || !read_entry(events, functions)) return std::nullopt;
  }
  if (events.next() != YAML_DOCUMENT_END_EVENT || events.next() != YAML_STREAM_END_EVENT) {
    if (events.type() != YAML_NO_EVENT) problems.error("expected the end", events.span());
    return std::nullopt;
  }
  return functions;
}

std::string entries_of(std::string_view text, const std::unordered_set<std::string>& roots) {
  const auto wanted = [&](std::string_view line) {
    if (!line.starts_with(kUsual)) return true;
    const std::string_view rest = line.substr(kUsual.size());
    const std::string_view name = rest.substr(0, rest.find_first_not_of(kNameLetters));
    const bool usual = rest.substr(name.size()).starts_with('(');
    return !usual || roots.contains(OperatorName::parse(name).root());
  };
  std::string kept;
  bool keep = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with('-')) keep = wanted(line);
    kept += keep ? line : "\n";
    at = end;
  }
  return kept;
}

}  // namespace backendgen
