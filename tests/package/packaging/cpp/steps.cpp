// SPDX-License-Identifier: Apache-2.0
// What a program in C++ does with a device: `PROGRAM STEP [ARGUMENT...]` prints what it saw.
#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/jit/serialization/pickle.h>

namespace {

using Arguments = std::vector<std::string>;

at::Tensor on_device() {
  return at::ones({2, 3}, at::TensorOptions().device(c10::Device("foo")));
}

/// What a call raised, its first line, or "nothing".
std::string raised(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "nothing";
}

void* open_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

std::string problem(void* library) {
  const auto ask = reinterpret_cast<const char* (*)()>(dlsym(library, "foo_backend_problem"));
  const char* const why = ask();
  return why == nullptr ? "none" : why;
}

void compute(const Arguments&) {
  const c10::Device device("foo:1");
  std::cout << "device " << device << ", hooks for "
            << int{at::globalContext().getAcceleratorHooksInterface().deviceCount()}
            << " devices\n";
  const at::Tensor x = at::arange(6, at::TensorOptions().dtype(at::kFloat)).view({2, 3});
  const at::Tensor y = at::matmul(x.to(device), x.to(device).t());
  std::cout << "on " << y.device() << (at::allclose(y.cpu(), at::matmul(x, x.t())) ? ", right" : "")
            << '\n';
}

void seed(const Arguments&) {
  const auto options = at::TensorOptions().device(c10::Device("foo"));
  at::manual_seed(1);
  const bool reached =
      at::globalContext().defaultGenerator(c10::Device("foo:1")).current_seed() == 1;
  const at::Tensor first = at::randn({8}, options);
  at::manual_seed(1);
  std::cout << "manual_seed " << reached << at::equal(first, at::randn({8}, options)) << '\n';
  at::Generator own = at::globalContext().defaultGenerator(c10::Device("foo:0")).clone();
  own.set_current_seed(7);
  const at::Tensor drawn = at::randn({8}, own, options);
  own.set_current_seed(7);
  std::cout << "generator " << own.device() << ' ' << at::equal(drawn, at::randn({8}, own, options))
            << '\n';
}

void pin(const Arguments&) {
  const at::Tensor pinned = at::ones({4}).pin_memory();
  const at::Tensor moved = pinned.to(c10::Device("foo"), at::kFloat, /*non_blocking=*/true);
  std::cout << "pinned " << pinned.is_pinned() << at::ones({4}).is_pinned() << ' '
            << at::equal(moved.cpu(), pinned) << '\n';
}

/// `save FILE`: for torch.load, and back.
void save(const Arguments& arguments) {
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("ones", on_device());
  dict.insert("count", at::arange(3).to(c10::Device("foo:1")));
  const std::vector<char> bytes = torch::jit::pickle_save(dict);
  std::ofstream(arguments[0], std::ios::binary).write(bytes.data(), bytes.size());
  const auto back = torch::jit::pickle_load(bytes).toGenericDict();
  for (const auto& entry : back) {
    const at::Tensor tensor = entry.value().toTensor();
    std::cout << "loaded " << entry.key().toStringRef() << " on " << tensor.device() << ' '
              << at::equal(tensor, dict.at(entry.key().toStringRef())) << '\n';
  }
}

/// `load FILE`: a dictionary that Python has saved from the device.
void load(const Arguments& arguments) {
  std::ifstream file(arguments[0], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  for (const auto& entry : torch::jit::pickle_load(bytes).toGenericDict()) {
    const at::Tensor tensor = entry.value().toTensor();
    std::cout << entry.key().toStringRef() << " on " << tensor.device() << " sum "
              << tensor.sum().item<double>() << '\n';
  }
}

void streams(const Arguments&) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  const c10::Device device("foo:0");
  const c10::Stream own = guard.getNewStream(device);
  at::Tensor sum = at::ones({1}, at::TensorOptions().device(device));
  own.synchronize();
  {
    const c10::StreamGuard on(own);
    for (int step = 0; step < 100; ++step) sum = sum + 1;
    std::cout << "current " << (guard.getStream(device) == own) << '\n';
  }
  const bool back = guard.getStream(device) == guard.getDefaultStream(device);
  own.synchronize();
  std::cout << "default again " << back << ", sum " << sum.item<float>() << ", idle " << own.query()
            << '\n';
}

void threads(const Arguments&) {
  std::atomic<int> right = 0;
  std::vector<std::thread> all;
  for (int index = 0; index < 8; ++index) {
    all.emplace_back([index, &right] {
      const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
      const c10::Device device(c10::DeviceType::PrivateUse1,
                               static_cast<c10::DeviceIndex>(index % 2));
      const c10::StreamGuard on(guard.getNewStream(device));
      at::Tensor x = at::ones({16}, at::TensorOptions().device(device));
      for (int step = 0; step < 50; ++step) x = x + index;
      right += at::equal(x.cpu(), at::ones({16}) + 50 * index);
    });
  }
  for (std::thread& thread : all) thread.join();
  std::cout << "right " << right << '\n';
}

void train(const Arguments&) {
  const at::Tensor x = on_device().requires_grad_();
  (x * x).sum().backward();
  std::cout << "gradient " << x.grad().sum().item<float>() << '\n';
}

/// Queues work on both devices, in streams of its own too, and keeps what it works on.
void queue_work() {
  static at::Tensor kept;
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  const at::Tensor pinned = at::ones({1 << 20}).pin_memory();
  for (int round = 0; round < 8; ++round) {
    const c10::Device device(c10::DeviceType::PrivateUse1,
                             static_cast<c10::DeviceIndex>(round % 2));
    const c10::StreamGuard on(guard.getNewStream(device));
    kept = pinned.to(device, at::kFloat, /*non_blocking=*/true).clone();
  }
}

/// Ends while streams work: `leave return`, `leave exit`, `leave thread`.
void leave(const Arguments& arguments) {
  queue_work();
  if (arguments[0] == "exit") std::exit(0);
  if (arguments[0] == "thread") std::thread([] { std::exit(0); }).join();
}

/// `open PATH...`: libraries of backends, one after another, and then the device.
void open_all(const Arguments& arguments) {
  for (const std::string& path : arguments)
    std::cout << "problem " << problem(open_library(path)) << '\n';
  std::cout << "device " << raised([] { on_device(); }) << '\n';
}

/// `name-before NAME PATH`: a program that registers a name by itself.
void name_before(const Arguments& arguments) {
  c10::register_privateuse1_backend(arguments[0]);
  open_all({arguments[1]});
}

/// `name-after NAME PATH`.
void name_after(const Arguments& arguments) {
  open_all({arguments[1]});
  std::cout << "named " << raised([&] { c10::register_privateuse1_backend(arguments[0]); }) << '\n';
}

/// `guard-before PATH`: another backend, which has given the device no name.
void guard_before(const Arguments& arguments) {
  using Other = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>;
  const c10::impl::DeviceGuardImplRegistrar other(c10::DeviceType::PrivateUse1, new Other);
  open_all(arguments);
}

const std::map<std::string, void (*)(const Arguments&)> kSteps = {{"compute", compute},
                                                                  {"seed", seed},
                                                                  {"pin", pin},
                                                                  {"save", save},
                                                                  {"load", load},
                                                                  {"streams", streams},
                                                                  {"threads", threads},
                                                                  {"train", train},
                                                                  {"leave", leave},
                                                                  {"open", open_all},
                                                                  {"name-before", name_before},
                                                                  {"name-after", name_after},
                                                                  {"guard-before", guard_before}};

}  // namespace

int main(int count, char** words) {
  std::cout << std::boolalpha;
  try {
    kSteps.at(words[1])(Arguments(words + 2, words + count));
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
