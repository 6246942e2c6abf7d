// SPDX-License-Identifier: Apache-2.0
// A C++ program moves a module: usage: module_moves LIBRARY. Prints what is wrong, or "the same".
#include <dlfcn.h>

#include <iostream>
#include <vector>

#include <c10/core/DeviceType.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

namespace {

const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);
int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::cout << "wrong: " << what << "\n";
  ++failures;
}

/// Trains on a device; the loss of each step.
std::vector<float> train(torch::nn::Linear& model, torch::optim::SGD& optimizer,
                         c10::Device device) {
  const at::Tensor inputs = torch::arange(12, torch::kFloat).reshape({4, 3}).div(12).to(device);
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = model->forward(inputs).square().sum();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

void run() {
  const torch::nn::Linear here(3, 2);
  torch::nn::Linear there(3, 2);
  torch::nn::Linear reference(3, 2);
  {
    const torch::NoGradGuard guard;
    for (const torch::nn::Linear& one : {there, reference}) {
      one->weight.copy_(here->weight);
      one->bias.copy_(here->bias);
    }
  }
  torch::optim::SGD optimizer(there->parameters(), 0.1);
  torch::optim::SGD expected(reference->parameters(), 0.1);
  const at::Tensor weight = there->weight;

  there->to(kDevice);
  check(there->weight.is_same(weight), "the parameter is another one");
  check(weight.device() == kDevice, "the parameter is not on the device");
  const std::vector<float> losses = train(there, optimizer, kDevice);
  const std::vector<float> right = train(reference, expected, c10::Device(c10::kCPU));
  for (std::size_t i = 0; i < right.size(); ++i) {
    check(std::abs(losses[i] - right[i]) < 1e-4F, "a loss is not that of the CPU");
  }
  check(losses.back() < losses.front(), "the optimizer trains nothing");
  check(weight.grad().device() == kDevice, "the gradient is not on the device");

  // PyTorch's C++ leaves gradients where they are, on every device.
  there->to(c10::Device(c10::kCPU), torch::kDouble);
  check(there->weight.is_same(weight), "the parameter is another one on the CPU");
  check(weight.device().is_cpu() && weight.dtype() == torch::kDouble, "the parameter stays there");
  check(at::allclose(weight.detach(), reference->weight.detach().to(torch::kDouble), 1e-4, 1e-5),
        "the parameter has other numbers");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::cout << "wrong: no library: " << (count == 2 ? dlerror() : "name one") << "\n";
    return 1;
  }
  c10::register_privateuse1_backend("foo");
  run();
  if (failures == 0) std::cout << "the same\n";
  return failures == 0 ? 0 : 1;
}
