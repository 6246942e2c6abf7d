// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <backendkit/distributed/c10d.h>
#include <backendkit/distributed/stream_point.h>

namespace backendkit {

/// Tells the device's Python module of a group that is about to be used for a tensor on the device,
/// while there are groups that get their part for the device then. Every collective and message of
/// PyTorch is an operator, whether Python or C++ calls it. Of the keys that every call passes, this
/// takes one which inference mode has as well, and below those of Python: what is only traced does
/// not come here.
class FirstUse {
 public:
  /// `space` is the namespace of the library. The module implements `use_group`.
  static void define_all(torch::Library& library, const std::string& space) {
    library.def("use_group(__torch__.torch.classes.c10d.ProcessGroup group) -> ()");
    library.def("await_use(int groups) -> ()", [space](std::int64_t groups) {
      if (groups > 0) watch(space);
      waiting() = groups;
    });
  }

 private:
  static std::atomic<std::int64_t>& waiting() {
    static std::atomic<std::int64_t> groups{0};
    return groups;
  }

  /// Takes part in all operators of process groups from now on.
  static void watch(const std::string& space) {
    static const auto* const library = [&] {
      use_group() =
          c10::Dispatcher::singleton().findSchemaOrThrow((space + "::use_group").c_str(), "");
      auto* const made = new torch::Library(torch::Library::IMPL, "c10d",
                                            c10::DispatchKey::BackendSelect, __FILE__, __LINE__);
      for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        const auto op = c10::Dispatcher::singleton().findSchema(name);
        if (!name.name.starts_with("c10d::") || !op || !has_group(op->schema())) continue;
        made->impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&call>());
      }
      return made;
    }();
    static_cast<void>(library);
  }

  static std::optional<c10::OperatorHandle>& use_group() {
    static std::optional<c10::OperatorHandle> op;
    return op;
  }

  static bool is_group(const c10::Argument& argument) {
    return argument.type()->str().find("ProcessGroup") != std::string::npos;
  }

  static bool has_group(const c10::FunctionSchema& schema) {
    return std::any_of(schema.arguments().begin(), schema.arguments().end(), is_group);
  }

  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
    if (waiting() > 0) tell(op, *stack);
    constexpr c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER,
                                        c10::DispatchKey::BackendSelect);
    op.redispatchBoxed(keys & below, stack);
  }

  static void tell(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    const auto values = stack.end() - static_cast<std::ptrdiff_t>(arguments.size());
    if (!std::any_of(values, stack.end(), is_on_device)) return;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!is_group(arguments[i])) continue;
      torch::jit::Stack group{values[static_cast<std::ptrdiff_t>(i)]};
      use_group()->callBoxed(&group);
    }
  }

  /// Whether there is a tensor on the device in a value.
  static bool is_on_device(const c10::IValue& value) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      return tensor.defined() && tensor.device().type() == kDeviceType;
    }
    if (!value.isList()) return false;
    const auto all = value.toListRef();
    return std::any_of(all.begin(), all.end(), is_on_device);
  }
};

}  // namespace backendkit
