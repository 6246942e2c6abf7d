// SPDX-License-Identifier: Apache-2.0
#include "description/keys.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "base/templates.h"
#include "description/dtypes.h"

namespace backendgen {
namespace {

constexpr Table kTables[] = {
    {"backend", "The device and its package."},
    {"torch", "The PyTorch releases that the project supports."},
    {"autoload", "How `import torch` loads the backend."},
    {"operators", "Which operators have kernels, and what happens to the rest."},
    {"amp", "Automatic mixed precision."},
    {"distributed", "`torch.distributed` on the device."},
    {"wheel", "What `backendgen wheel` makes of the library and of the libraries that it needs."},
    {"doctor", "What `backendgen doctor` checks of your driver, on the machine of a user."},
    {"entry-points",
     "Further entry points of the package, a table for each group. Groups with dots may be written "
     "as tables in tables."},
};

constexpr Rule kDeviceName = {"a device name", judge_device_name, "device_name"};
constexpr Rule kDisplayName = {"a display name", judge_display_name, "display_name"};
constexpr Rule kPackageName = {"a package name", judge_package_name, "package_name"};
constexpr Rule kVersion = {"a version", judge_version, "version"};
constexpr Rule kSummary = {"the summary", judge_summary, "line"};
constexpr Rule kRuntime = {"the runtime's C++ type", judge_cpp_name, "cpp_name"};
constexpr Rule kHeader = {"the runtime's header", judge_header, "header"};
constexpr Rule kRequirement = {"a requirement of PyTorch", judge_torch_requirement, "requirement"};
constexpr Rule kModule = {"a Python module", judge_python_module, "submodule"};
constexpr Rule kDtype = {"a dtype of a kernel", judge_dtype, "dtype"};
constexpr Rule kAmpDtype = {"a dtype of autocast", judge_amp_dtype, "amp_dtype"};
constexpr Rule kCppFunction = {"a C++ function", judge_cpp_name, "cpp_function"};
constexpr Rule kPythonFunction = {"a Python function", judge_python_function, "python_function"};
constexpr Rule kOperatorSchema = {"a schema", judge_schema_text, "schema"};
constexpr Rule kLibrary = {"a library of the driver", judge_library_name, "library"};
constexpr Rule kNode = {"a device node", judge_device_node, "device_node"};
constexpr Rule kAdvice = {"the advice", judge_summary, "line"};
constexpr Rule kKernels = {nullptr, nullptr, "kernels"};
constexpr Rule kCustom = {nullptr, nullptr, "custom"};
constexpr Rule kPlatform = {"a platform", judge_platform, "platform"};
constexpr Rule kLibraryPattern = {"a pattern of libraries", judge_library_pattern,
                                  "library_pattern"};
constexpr Rule kRuntimePackage = {nullptr, nullptr, "runtime"};
constexpr Rule kDistribution = {"a package name", judge_distribution_name, "distribution_name"};
constexpr Rule kProjectLibrary = {"a library of the project", judge_project_library,
                                  "project_library"};
constexpr Rule kLicense = {"a licence", judge_license, "license"};
constexpr Rule kProjectFile = {"a file of the project", judge_project_file, "project_file"};
constexpr Rule kPackageRequirement = {"a requirement of the package", judge_package_requirement,
                                      "package_requirement"};
constexpr Rule kGroupName = {"a name of a process group", judge_group_name, "group_name"};
constexpr Rule kOperatorList = {"an operator", judge_operator, "operator"};

constexpr Key kKeys[] = {
    {"backend", "name", &Description::name, &kDeviceName, "", "",
     "the device: `torch.device(\"foo\")`, `torch.foo`. Lower-case letters and `_`, at most 32 "
     "characters; digits are not allowed, because PyTorch does not read them in a device's "
     "name. It cannot be a keyword, one of PyTorch's devices, a name that `torch` or its "
     "tensors already have, or a name that a C++ namespace cannot have (`errno`, `time`)",
     "foo", true},
    {"backend", "display_name", &Description::display_name, &kDisplayName, "<name>", "",
     "the device's name in messages that people read, such as `Foo out of memory`: one line, at "
     "most 64 characters. `torch.foo.display_name` is this text. What people type stays `name`",
     "Foo"},
    {"backend", "package", &Description::package, &kPackageName, "torch_<name>", "",
     "what pip installs and Python imports: one lower-case identifier, at most 64 characters. "
     "It cannot be a module of Python, a package that an environment with PyTorch has (`numpy`, "
     "`pip`), or a folder of the project (`csrc`, `tests`)",
     "torch_foo"},
    {"backend", "version", &Description::version, &kVersion, "", "",
     "the package's version: a public version as defined by PEP 440", "0.1.0", true},
    {"backend", "summary", &Description::summary, &kSummary,
     "PyTorch backend for <display_name> devices", "", "one line, at most 200 characters", ""},
    {"backend", "runtime", &Description::runtime, &kRuntime, "<name>::Runtime", "",
     "the C++ type with the functions of docs/runtime.md, in a namespace of yours", "foo::Runtime"},
    {"backend", "header", &Description::header, &kHeader, "runtime.h", "",
     "the header that declares it: a path relative to the folder of `backend.toml`, to its "
     "`csrc`, or to an include folder of a linked library. `check` warns if the file is in "
     "neither of the first two",
     ""},

    {"torch", "requires", &Description::torch_requires, &kRequirement, ">=" BACKENDGEN_OLDEST_TORCH,
     "",
     "the PyTorch releases that you support: clauses separated by commas, each an operator "
     "(`>=`, `<=`, `<`, `>`, `==` or `!=`) and a release such as `2.6` or `2.6.1`. A build with "
     "any other release is an error, and `check` reports a range that no release can meet. The "
     "wheel requires the minor release that it was built with",
     ">=2.5,<2.15"},

    {"autoload", "layout", &Description::layout, nullptr, "", "",
     "`package`: the package itself is the backend, `torch_foo:_autoload`. `submodule`: the "
     "package is the vendor's own, such as `foo_frameworks`, and its submodule `torch` is the "
     "backend",
     ""},
    {"autoload", "on_failure", &Description::on_failure, nullptr, "", "",
     "what `import torch` does when the backend cannot be loaded. `warn`: it warns once; the "
     "device's name stays known, `torch.foo.is_available()` is False, and the first use of the "
     "device raises an error with the cause. `error`: it fails",
     ""},
    {"autoload", "imports", &Description::imports, &kModule, "", "",
     "your Python modules, inside the package, to import once the library is loaded. They "
     "cannot have the name of a module that BackendKit generates. The names in their `__all__` "
     "also appear in `torch.foo`",
     "torch_foo.extras"},

    {"operators", "fallback", &Description::fallback, nullptr, "", "",
     "what happens to operators without a kernel: `cpu` computes them on the CPU and copies the "
     "results back; `error` raises an error",
     ""},
    {"operators", "inputs", &Kernel::inputs, nullptr, "", "",
     "which tensors kernels receive. `strided`: tensors as PyTorch passes them. `dense`: "
     "contiguous tensors, which for elementwise operators also have one shape, dtype and "
     "device, so that a kernel is a loop over plain arrays",
     ""},
    {"operators", "dtypes", &Kernel::dtypes, &kDtype, "", "every dtype",
     "the dtypes that kernels support, by PyTorch's names: `float32`, `bfloat16`, `int64`, "
     "`bool`, ... Every tensor of a call must have one of them, results included; for "
     "elementwise operators, so must the dtype in which they compute",
     "float32"},
    {"operators", "unsupported", &Kernel::unsupported, nullptr, "", "",
     "what a call with another dtype does. `fallback`: it is treated like an operator without a "
     "kernel. `error`: it raises PyTorch's `\"add\" not implemented for 'Double'`",
     ""},
    {"operators",
     "kernels",
     {},
     &kKernels,
     "",
     "none",
     "a table, operator = C++ function. The operator is named as PyTorch names it, overload after "
     "a dot; the function by its qualified name. The generated `kernels.h` declares it: a wrong "
     "signature is a compile error, a missing definition a link error",
     ""},
    {"operators",
     "custom",
     {},
     &kCustom,
     "",
     "none",
     "`[[operators.custom]]`: operators of your own, a table each; see docs/custom-operators.md",
     ""},
    {"operators.kernels", "function", &Kernel::function, &kCppFunction, "", "",
     "the C++ function, by its qualified name", "foo::add", true},
    {"operators.custom", "schema", &CustomOperator::text, &kOperatorSchema, "", "",
     "the operator's schema in PyTorch's syntax, in the namespace of the device's name. "
     "`Tensor(a!)` is a tensor that the kernel writes",
     "<name>::double(Tensor x) -> Tensor", true},
    {"operators.custom", "kernel", &CustomOperator::kernel, &kCppFunction, "", "",
     "the C++ function for the device. `kernels.h` declares it; while it runs, the device of "
     "its arguments is the current one",
     "<name>::double_kernel", true},
    {"operators.custom", "cpu", &CustomOperator::cpu, &kCppFunction, "", "none",
     "the C++ function for tensors on the CPU; without it they raise an error", ""},
    {"operators.custom", "meta", &CustomOperator::meta, &kCppFunction, "", "none",
     "computes only the shapes and dtypes of the results, in C++: a function of the same type, "
     "whose results have no data",
     ""},
    {"operators.custom", "fake", &CustomOperator::fake, &kPythonFunction, "", "none",
     "the same in Python, `module:function`; use it instead of `meta`", ""},
    {"operators.custom", "setup_context", &CustomOperator::setup_context, &kPythonFunction, "",
     "none",
     "what keeps values for `backward`, in Python, as `torch.library.register_autograd` takes it",
     ""},
    {"operators.custom", "backward", &CustomOperator::backward, &kPythonFunction, "", "none",
     "the gradients, in Python, as `torch.library.register_autograd` takes them", ""},

    {"amp", "dtypes", &Description::amp_dtypes, &kAmpDtype, "", "",
     "the dtypes that `torch.autocast(\"foo\")` may use, the default first: `float16`, "
     "`bfloat16`. If empty, the device has no autocast",
     "float16"},
    {"amp",
     "lower_precision_fp",
     {},
     &kOperatorList,
     "",
     "PyTorch's list for CUDA",
     "operators that run in autocast's dtype",
     "mm"},
    {"amp",
     "fp32",
     {},
     &kOperatorList,
     "",
     "PyTorch's list for CUDA",
     "operators that run in float32",
     "exp"},
    {"amp",
     "fp32_set_opt_dtype",
     {},
     &kOperatorList,
     "",
     "PyTorch's list for CUDA",
     "operators whose result is float32 unless the call names a dtype",
     "softmax.int"},
    {"amp",
     "promote",
     {},
     &kOperatorList,
     "",
     "PyTorch's list for CUDA",
     "operators that run in the widest dtype of their tensors",
     "addcmul"},

    {"distributed", "enabled", &Description::distributed, nullptr, "true", "",
     "whether the backend has a process group, for `torchrun` and all of `torch.distributed` on "
     "the "
     "device. `false`: the vendor registers one, or programs use one device",
     ""},
    {"distributed", "name", &Description::group, &kGroupName, "<name>ccl", "",
     "the process group's name, as in `init_process_group(\"fooccl\")`: one lower-case identifier, "
     "at most 32 characters. It cannot be the name of a process group or of a device of PyTorch "
     "(`gloo`, `nccl`, `cuda`)",
     "fooccl"},

    {"wheel", "bundle", &Description::bundle, &kLibraryPattern, "", "",
     "the libraries that `backendgen wheel --repair` copies into the wheel, by the names under "
     "which they are loaded; `*`, `?` and `[...]` as in a shell. See docs/wheels.md",
     "libfoodriver.so.*"},
    {"wheel", "exclude", &Description::exclude, &kLibraryPattern, "", "",
     "the libraries that `backendgen wheel --repair` leaves out, because the driver's own package "
     "installs them on each machine",
     "libfoofirmware.so.*"},
    {"wheel", "platform", &Description::platform, &kPlatform, "", "any",
     "the newest platform that the wheel may require, such as `manylinux_2_28`, without the "
     "architecture. `backendgen wheel --repair` names the symbols that need a newer one",
     "manylinux_2_28"},
    {"wheel",
     "runtime",
     {},
     &kRuntimePackage,
     "",
     "none",
     "`[wheel.runtime]`: the driver's libraries in a package of their own, which `backendgen wheel "
     "--runtime` builds and the backend's wheel requires; see docs/wheels.md",
     ""},
    {"wheel.runtime", "package", &Description::runtime_package, &kDistribution, "<name>-runtime",
     "",
     "what pip installs: lower-case words with `-` or `_` between, at most 64 characters. Python "
     "knows it as `foo_runtime`",
     "foo-runtime"},
    {"wheel.runtime", "version", &Description::runtime_version, &kVersion, "", "",
     "that package's version, by PEP 440. It changes when the driver does, and the backend's does "
     "not have to",
     "4.2.0", true},
    {"wheel.runtime", "libraries", &Description::runtime_libraries, &kProjectLibrary, "", "",
     "the shared libraries: files of the project, as paths relative to the folder of "
     "`backend.toml`, in which `*` and `?` stand for other characters",
     "driver/lib/libfoodriver.so.4", true},
    {"wheel.runtime", "requires", &Description::runtime_requires, &kPackageRequirement, "",
     "`version` without its patch number, up to the next major one, such as `>=4.2,<5`",
     "the versions of that package with which the backend works: clauses separated by commas, each "
     "an operator (`>=`, `<=`, `<`, `>`, `==` or `!=`) and a version. `version` has to be one of "
     "them",
     ">=4.2,<5"},
    {"wheel.runtime", "license", &Description::runtime_license, &kLicense, "",
     "that of `setup.py`, unless `license_files` is given",
     "the licence of that package: an SPDX expression, at most 200 characters, such as "
     "`LicenseRef-Foo` for one of your own",
     "LicenseRef-Foo"},
    {"wheel.runtime", "license_files", &Description::runtime_license_files, &kProjectFile, "",
     "those of the backend's wheel",
     "the files with its licences, as paths relative to the folder of `backend.toml`, in which `*` "
     "and `?` stand for other characters",
     "driver/EULA.txt"},
    {"doctor", "libraries", &Description::driver_libraries, &kLibrary, "", "",
     "the shared libraries of your driver, by the names that the system's loader looks for",
     "libfoo.so.1"},
    {"doctor", "devices", &Description::device_nodes, &kNode, "", "",
     "the device nodes that your driver opens, for reading and writing: paths below `/dev/`, in "
     "which `*` and `?` stand for other characters",
     "/dev/foo*"},
    {"doctor", "install", &Description::driver_install, &kAdvice, "", "none",
     "what a user does if a library or node is missing: one line, at most 200 characters",
     "`apt-get install foo-driver`"},
};

/// What a pointer to a member points to; void for std::monostate.
template <class Field>
struct PointedTo {
  using Struct = void;
  using Value = void;
};
template <class S, class V>
struct PointedTo<V S::*> {
  using Struct = S;
  using Value = V;
};

/// Calls `function` with the `PointedTo` of a key's field.
template <class Function>
auto with_member(const Key& key, Function function) {
  return std::visit(
      [&](const auto field) { return function(PointedTo<std::decay_t<decltype(field)>>()); },
      key.field);
}

}  // namespace

std::span<const Table> tables() {
  return kTables;
}

std::vector<Key> keys_of(std::string_view table) {
  std::vector<Key> keys;
  for (const Key& key : kKeys) {
    const bool also = table == "operators.kernels" && is_of_kernels(key);
    if (key.table == table || also) keys.push_back(key);
  }
  return keys;
}

const Key& key_of(std::string_view table, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.table == table && key.name == name) return key;
  }
  throw InternalError(std::string("no key ").append(table).append(" ").append(name));
}

std::span<const std::string_view> words_of(const Key& key) {
  return with_member(key, [](auto member) -> std::span<const std::string_view> {
    using Value = typename decltype(member)::Value;
    if constexpr (std::is_enum_v<Value>) {
      return Words<Value>::kAll;
    } else {
      return {};
    }
  });
}

bool is_of_kernels(const Key& key) {
  return with_member(
      key, [](auto member) { return std::is_same_v<typename decltype(member)::Struct, Kernel>; });
}

bool is_boolean(const Key& key) {
  return with_member(
      key, [](auto member) { return std::is_same_v<typename decltype(member)::Value, bool>; });
}

bool is_list(const Key& key) {
  const bool texts = with_member(key, [](auto member) {
    return std::is_same_v<typename decltype(member)::Value, std::vector<Text>>;
  });
  return texts || key.rule == &kOperatorList;
}

std::vector<std::string> names_of(const std::vector<Key>& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  return names;
}

std::string for_device(std::string_view text, std::string_view name, std::string_view display) {
  std::string result(text);
  const auto replace = [&result](std::string_view word, std::string_view by) {
    for (std::size_t at = 0; (at = result.find(word, at)) != std::string::npos; at += by.size()) {
      result.replace(at, word.size(), by);
    }
  };
  replace("<name>", name);
  if (!display.empty()) replace("<display_name>", display);
  return result;
}

void set_default(const Key& key, Description& description) {
  if (key.initial.empty()) return;
  if (auto* const field = std::get_if<Text Description::*>(&key.field)) {
    description.** field = {
        for_device(key.initial, description.name.value, description.display_name.value), {}};
  }
}

}  // namespace backendgen
