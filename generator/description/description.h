// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "torch/autocast_lists.h"
#include "torch/schema.h"

namespace backendgen {

enum class Layout {
  kPackage,    // the package is the device module: torch_foo
  kSubmodule,  // a vendor's parent package, whose submodule `torch` is it: foo_frameworks.torch
};
enum class OnFailure { kWarn, kError };
enum class Fallback { kCpu, kError };

/// What a kernel's tensors are like.
enum class Inputs {
  kStrided,  // as PyTorch passes them
  kDense,    // contiguous, and for elementwise operators of one shape and dtype
};

/// What answers when a tensor has a dtype that a kernel does not compute.
enum class Unsupported { kFallback, kError };

/// One line of [operators.kernels]; what it does not say itself is as [operators] says.
struct Kernel {
  Text op;        // "add.out", without "aten::"
  Text function;  // "foo::add"
  Inputs inputs = Inputs::kStrided;
  Unsupported unsupported = Unsupported::kFallback;
  std::vector<Text> dtypes;  // what it computes, by PyTorch's names; empty: every dtype
};

/// One table of [[operators.custom]]: an operator of the vendor's own.
struct CustomOperator {
  Text text;                     // "foo::fused_rms_norm(Tensor x) -> Tensor"
  std::optional<Schema> schema;  // the same without the namespace; always there after reading
  Text kernel;                   // the C++ function for the device
  Text cpu;                      // for the CPU; may be empty, as all below
  Text meta;                     // only for shapes and dtypes, in C++
  Text fake;                     // the same in Python: "torch_foo.extras:fake"
  Text setup_context;            // what keeps values for `backward`, in Python
  Text backward;                 // the gradients, in Python
};

/// One line of an [entry-points.GROUP] table.
struct EntryPoint {
  Text name;
  Text target;  // "module.path:attribute"
};

struct EntryPointGroup {
  Text name;
  std::vector<EntryPoint> entries;  // in file order
};

/// A checked backend.toml. Every field holds what its language accepts: identifiers are
/// identifiers, texts have no control characters, paths stay below the project, defaults are
/// filled in. After reading, no code asks whether a key exists.
struct Description {
  // [backend]
  Text name;          // a C++, Python and device identifier: foo
  Text display_name;  // what people read where they type nothing: Foo
  Text package;       // a Python identifier: torch_foo
  Text version;       // a PEP 440 version
  Text summary;       // one line of any printable text
  Text runtime;       // a qualified C++ name: foo::Runtime
  Text header;        // a relative path without "..": runtime.h

  // [torch]
  Text torch_requires;  // comma-separated clauses such as ">=2.5,<3"

  // [autoload]
  Layout layout = Layout::kPackage;
  OnFailure on_failure = OnFailure::kWarn;
  std::vector<Text> imports;  // the vendor's Python modules, imported once the library is loaded

  // [operators]
  Fallback fallback = Fallback::kCpu;
  std::vector<Kernel> kernels;  // in file order

  std::vector<CustomOperator> custom;  // in file order

  // [amp]
  std::vector<Text> amp_dtypes;  // names of torch dtypes, the default first
  /// The lists that are given; a policy without one has PyTorch's list for CUDA.
  std::map<CastPolicy, std::vector<Text>> amp_lists;

  // [distributed]
  bool distributed = true;  // whether the backend has a process group of its own
  Text group;               // its name, one of torch.distributed.Backend: fooccl

  // [wheel]
  Text platform;              // the newest manylinux tag that is accepted; empty: any
  std::vector<Text> bundle;   // globs of libraries that the wheel contains
  std::vector<Text> exclude;  // and of those that it finds on the user's machine
  // [wheel.runtime]; empty without the table
  Text runtime_package;                     // what pip installs: foo-runtime
  Text runtime_version;                     // a PEP 440 version
  std::vector<Text> runtime_libraries;      // relative paths of the project's files, with wildcards
  Text runtime_requires;                    // clauses such as ">=4.2,<5"
  Text runtime_license;                     // an SPDX expression; may be empty
  std::vector<Text> runtime_license_files;  // as runtime_libraries
  // [doctor]
  std::vector<Text> driver_libraries;  // what the driver must have: libfoo.so.1
  std::vector<Text> device_nodes;      // patterns of files below /dev
  Text driver_install;                 // what to do when they are missing; may be empty

  // [entry-points.*]
  std::vector<EntryPointGroup> entry_points;  // in file order

  /// The Python module that becomes `torch.<name>`'s package: `torch_foo`, or
  /// `foo_frameworks.torch`.
  std::string module() const;

  /// The entry points of the package: the backend's own, then the vendor's.
  std::vector<EntryPointGroup> all_entry_points() const;

  /// What the backend's wheel requires of the driver's own: `foo-runtime>=4.2,<5`; may be empty.
  std::string runtime_requirement() const;
};

}  // namespace backendgen
