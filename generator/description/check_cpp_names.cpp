// SPDX-License-Identifier: Apache-2.0
#include "description/check_cpp_names.h"

#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace backendgen {

namespace {

/// A kernel whose function was refused has the operator's name in its place.
bool is_refused(const Kernel& kernel) {
  return kernel.function.value == kernel.op.value;
}

/// The functions that a description names, in file order.
std::vector<const Text*> functions_of(const Description& description) {
  std::vector<const Text*> functions;
  for (const Kernel& kernel : description.kernels) {
    if (!is_refused(kernel)) functions.push_back(&kernel.function);
  }
  for (const CustomOperator& custom : description.custom) {
    for (const Text* one : {&custom.kernel, &custom.cpu, &custom.meta}) {
      if (!one->value.empty()) functions.push_back(one);
    }
  }
  return functions;
}

/// Each namespace in front of a name, with the first name that has it: `foo` and `foo::relu` of
/// `foo::relu::a`.
using Namespaces = std::map<std::string_view, const Text*>;

void add_namespaces(const Text& name, Namespaces& namespaces) {
  const std::string_view text = name.value;
  for (std::size_t at = 0; (at = text.find("::", at)) != text.npos; at += 2) {
    namespaces.emplace(text.substr(0, at), &name);
  }
}

/// An error at the later of two names that has a place.
void report(std::string message, const Text& name, const Text& other, Diagnostics& problems) {
  const bool later = !other.span.known() || (name.span.known() && other.span < name.span);
  const Text& last = later ? name : other;
  const Text& first = later ? other : name;
  Diagnostic& error = problems.error(std::move(message), last.span);
  if (first.span.known()) error.earlier = Label{first.span, "first used here"};
}

}  // namespace

void check_cpp_names(const Description& description, Diagnostics& problems) {
  const Text& runtime = description.runtime;
  const std::vector<const Text*> functions = functions_of(description);
  Namespaces namespaces;
  add_namespaces(runtime, namespaces);
  for (const Text* function : functions) add_namespaces(*function, namespaces);

  const auto judge = [&](const Text& name, const char* what) {
    const auto found = namespaces.find(name.value);
    if (found == namespaces.end()) return false;
    report(fmt::format("`{}` cannot be {} and the namespace of `{}`", name.value, what,
                       found->second->value),
           name, *found->second, problems);
    return true;
  };
  if (!runtime.value.empty()) judge(runtime, "a type");
  std::map<std::string_view, bool> judged;
  for (const Text* function : functions) {
    if (!judged.emplace(function->value, true).second) continue;
    if (function->value == runtime.value) {
      report(fmt::format("`{}` cannot be a function and the runtime's type", runtime.value),
             *function, runtime, problems);
    } else {
      judge(*function, "a function");
    }
  }
}

}  // namespace backendgen
