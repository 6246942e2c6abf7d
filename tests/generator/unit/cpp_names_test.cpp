// SPDX-License-Identifier: Apache-2.0
#include "description/check_cpp_names.h"

#include <string>
#include <vector>

#include "catch.h"
#include "description/c_names.h"

using namespace backendgen;

namespace {

/// What is said about a runtime and kernels of operators `op0`, `op1`, ..., on lines 1, 2, ...
std::vector<std::string> messages(const std::string& runtime,
                                  const std::vector<std::string>& functions) {
  Description description;
  description.runtime = {runtime, {}};
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Kernel kernel;
    kernel.op = {"op" + std::to_string(i), {i + 1, 1, 3}};
    kernel.function = {functions[i], {i + 1, 7, functions[i].size()}};
    description.kernels.push_back(kernel);
  }
  Diagnostics problems;
  check_cpp_names(description, problems);
  std::vector<std::string> all;
  for (const Diagnostic& one : problems.sorted()) {
    all.push_back(std::to_string(one.span.line) + ": " + one.message);
  }
  return all;
}

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("names of functions and types are no namespaces of others", "[cpp_names]") {
  CHECK(messages("foo::Runtime", {"foo::add", "foo::ops::add", "add"}).empty());
  CHECK(messages("foo::Runtime", {"foo::relu", "foo::relu::a"}) ==
        Messages{"2: `foo::relu` cannot be a function and the namespace of `foo::relu::a`"});
  CHECK(messages("foo::Runtime", {"foo::relu::a", "foo::relu"}) ==
        Messages{"2: `foo::relu` cannot be a function and the namespace of `foo::relu::a`"});
  CHECK(messages("foo::Runtime", {"foo::Runtime"}) ==
        Messages{"1: `foo::Runtime` cannot be a function and the runtime's type"});
  CHECK(messages("foo::Runtime", {"foo::Runtime::add"}) ==
        Messages{"1: `foo::Runtime` cannot be a type and the namespace of `foo::Runtime::add`"});
  CHECK(messages("foo::Runtime", {"foo"}) ==
        Messages{"1: `foo` cannot be a function and the namespace of `foo::Runtime`"});
}

TEST_CASE("a function that serves several operators is judged once", "[cpp_names]") {
  CHECK(messages("foo::Runtime", {"foo::a::b", "foo::a", "foo::a"}).size() == 1);
}

TEST_CASE("a function that was refused is not judged", "[cpp_names]") {
  CHECK(messages("op0::Runtime", {"op0"}).empty());
}

TEST_CASE("names of C", "[cpp_names]") {
  for (const char* name : {"time", "stdin", "div", "open", "signgam", "uint8_t"}) {
    INFO(name);
    CHECK(is_global_c_name(name));
  }
  for (const char* name : {"foo", "kite", "npu", "tpu", "std", ""}) {
    INFO(name);
    CHECK_FALSE(is_global_c_name(name));
    CHECK_FALSE(is_c_macro(name));
  }
}
