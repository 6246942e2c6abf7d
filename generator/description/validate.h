// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace backendgen {

/// Why a text cannot be used for something: `message` ends an error ("it starts with a digit").
struct Complaint {
  std::string message;
  std::string help;  // what to type instead ("write `torch_foo`"); may be empty
};

/// Each returns what is wrong with the text, empty when it may be used as it is in generated C++,
/// Python, CMake and YAML.

/// `[a-z][a-z_]*`, at most 32 characters, no keyword, no device of PyTorch, no name that
/// registering a device would replace in `torch`, `torch.Tensor`, `torch.nn.Module`, and none that
/// a C++ namespace or a CMake target cannot have. PyTorch's parser of devices reads letters and `_`
/// only.
std::optional<Complaint> judge_device_name(std::string_view name);

/// One line of printable text, at most 64 characters.
std::optional<Complaint> judge_display_name(std::string_view name);

/// A lower-case Python identifier, at most 64 characters, no keyword, no module or project that
/// others own, and no folder of a project.
std::optional<Complaint> judge_package_name(std::string_view name);

/// A lower-case Python identifier, at most 32 characters, no keyword, and no process group or
/// device that PyTorch has.
std::optional<Complaint> judge_group_name(std::string_view name);

/// A public version of PEP 440 in its normal form (`1.0rc1`, not `1.0-RC1`), without a local part.
std::optional<Complaint> judge_version(std::string_view version);

/// One line of printable text, at most 200 characters. It may hold quotes, backslashes and template
/// syntax: who writes it into a file quotes it for that file.
std::optional<Complaint> judge_summary(std::string_view summary);

/// Identifiers joined by `::`, none a keyword of C++, a macro or reserved to the compiler, and not
/// in a namespace that C++ or PyTorch owns.
std::optional<Complaint> judge_cpp_name(std::string_view name);

/// The name of a shared library without a folder: letters, digits, `.`, `_`, `-` and `+`, with
/// `.so` in it.
std::optional<Complaint> judge_library_name(std::string_view name);

/// A path below /dev of letters, digits, `.`, `_`, `-` and `/`, in which `*` and `?` stand for
/// others; no part of it is `..`.
std::optional<Complaint> judge_device_node(std::string_view path);

/// A relative path of a header: names of letters, digits, `.`, `_`, `-` and `+`, joined by `/`,
/// none of them `.` or `..`.
std::optional<Complaint> judge_header(std::string_view path);

/// Python identifiers joined by dots, none a keyword.
std::optional<Complaint> judge_python_module(std::string_view module);

/// Clauses such as `>=2.5` or `!=2.6.0` with commas between, which a release from the
/// oldest on can meet.
std::optional<Complaint> judge_torch_requirement(std::string_view requirement);

/// An operator as PyTorch writes it, `add` or `add.out`; without `aten::`.
std::optional<Complaint> judge_operator(std::string_view name);

/// A schema of a custom operator: one line of printable ASCII, which `parse_schema` judges further.
std::optional<Complaint> judge_schema_text(std::string_view text);

/// The group of an entry point: words of letters, digits and `_` with dots between.
std::optional<Complaint> judge_entry_point_group(std::string_view group);

/// The name of an entry point: letters, digits, `.`, `_` and `-`.
std::optional<Complaint> judge_entry_point_name(std::string_view name);

/// The name of an entry point that pip makes a program of: the name of a file, and of no program
/// that shells, systems or environments have.
std::optional<Complaint> judge_script_name(std::string_view name);

/// What an entry point refers to: `module` or `module:attribute`.
std::optional<Complaint> judge_entry_point_target(std::string_view target);

/// `module:function`, as the description refers to Python code.
std::optional<Complaint> judge_python_function(std::string_view target);

/// A manylinux tag without its architecture: `manylinux_2_28`.
std::optional<Complaint> judge_platform(std::string_view platform);

/// What pip installs: lower-case words with `-` or `_` between, which as a name of Python's is a
/// package name as above.
std::optional<Complaint> judge_distribution_name(std::string_view name);

/// Clauses such as `>=4.2` or `!=4.3.1` with commas between, each with a version of PEP 440.
std::optional<Complaint> judge_package_requirement(std::string_view requirement);

/// A relative path of a shared library below the project's folder, in which `*` and `?` stand for
/// other characters.
std::optional<Complaint> judge_project_library(std::string_view pattern);

/// The same of any file.
std::optional<Complaint> judge_project_file(std::string_view pattern);

/// The characters of an SPDX expression, such as `Apache-2.0 OR MIT`; what builds the wheel knows
/// the names.
std::optional<Complaint> judge_license(std::string_view expression);

/// File names of shared libraries, with `*`, `?` and `[...]` as in a shell; never one of PyTorch's.
std::optional<Complaint> judge_library_pattern(std::string_view pattern);

}  // namespace backendgen
