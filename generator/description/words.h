// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace backendgen {

/// Whether C++20 (or a widely used later or alternative spelling) reserves the word.
bool is_cpp_keyword(std::string_view word);

/// Whether Python reserves the word; `match` and other soft keywords are free.
bool is_python_keyword(std::string_view word);

/// Whether Python's standard library, any release from 3.9 to 3.14, has a top-level module of this
/// name.
bool is_standard_python_module(std::string_view name);

/// Whether an environment with PyTorch is likely to have a package of this (lower-case) name, as a
/// module or as a project that pip installs.
bool is_known_package(std::string_view name);

/// Whether an environment with PyTorch, a shell or a system has a program of this (lower-case)
/// name.
bool is_program(std::string_view name);

/// Whether PyTorch has a process group, or something else in `torch.distributed.Backend`, of this
/// (lower-case) name.
bool is_process_group(std::string_view name);

/// Whether PyTorch has a device type, or a key for one, of this (lower-case) name.
bool is_torch_device(std::string_view name);

}  // namespace backendgen
