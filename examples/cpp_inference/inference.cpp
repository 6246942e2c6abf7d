// SPDX-License-Identifier: Apache-2.0
// inference FILE [DEVICE]: computes a small network on a device, with weights that Python saved.
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/serialization/pickle.h>

namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// The dictionary of tensors that torch.save has written, on `device`.
Tensors load(const std::string& path, c10::Device device) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Tensors tensors;
  for (const auto& entry : torch::jit::pickle_load(bytes).toGenericDict()) {
    tensors[entry.key().toStringRef()] = entry.value().toTensor().to(device);
  }
  return tensors;
}

/// The probabilities of the classes. It is computed where the tensors are.
at::Tensor forward(const Tensors& in) {
  const at::Tensor hidden = at::conv2d(in.at("image"), in.at("convolution.weight"),
                                       in.at("convolution.bias"), /*stride=*/2);
  return at::linear(hidden.relu().flatten(1), in.at("classes.weight"), in.at("classes.bias"))
      .softmax(1);
}

double largest_difference(const at::Tensor& one, const at::Tensor& other) {
  return (one.cpu() - other.cpu()).abs().max().item<double>();
}

int infer(const std::string& path, const c10::Device& device) {
  const c10::InferenceMode mode;
  const Tensors here = load(path, device);
  const Tensors on_cpu = load(path, c10::Device("cpu"));
  const at::Tensor result = forward(here);
  const double of_cpu = largest_difference(result, forward(on_cpu));
  const double of_python = largest_difference(result, on_cpu.at("expected"));
  std::cout << std::setprecision(3) << result.device() << ": class "
            << result.argmax(1).item<std::int64_t>() << " of " << result.size(1) << ", probability "
            << result.max().item<float>() << '\n'
            << "the CPU's result differs by " << of_cpu << ", Python's by " << of_python << '\n';
  return of_cpu < 1e-5 && of_python < 1e-5 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: inference FILE [DEVICE]\n";
    return 2;
  }
  try {
    return infer(words[1], c10::Device(count == 3 ? words[2] : "foo"));
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
