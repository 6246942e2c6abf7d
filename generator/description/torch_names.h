// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace backendgen {

/// Something in PyTorch that a device of the same name would replace.
struct TorchName {
  std::string path;  // "torch.fft", "torch.Tensor.view"
  const char* kind;  // "a module" or "a name"
};

/// What stands in the way of a device called `name`: registering one sets `torch.<name>`,
/// `torch.Tensor.<name>`, `torch.Tensor.is_<name>` and `<name>` of modules and storages, and
/// PyTorch refuses to replace what it has. Looks in a list of the releases 2.5.1 to 2.15.0.
std::optional<TorchName> find_torch_name(std::string_view name);

}  // namespace backendgen
