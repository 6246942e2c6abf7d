// SPDX-License-Identifier: Apache-2.0
// Calls kernels through backendkit::Unstructured and prints which device was current in each, for
// test_registration.py.

#include <iostream>
#include <stdexcept>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <backendkit/unstructured.h>

namespace {

thread_local c10::DeviceIndex current = 0;

/// As much of a device guard as keeps the current device.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {type(), current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 4; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

at::Tensor on(c10::Device device) {
  const auto key = device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1;
  return at::detail::make_tensor<c10::TensorImpl>(c10::DispatchKeySet(key),
                                                  caffe2::TypeMeta::Make<float>(), device);
}

at::Tensor on(c10::DeviceIndex index) {
  return on(c10::Device(c10::DeviceType::PrivateUse1, index));
}

int64_t binary(const at::Tensor&, const at::Tensor&, at::Tensor&) {
  return current;
}
int64_t list(at::TensorList) {
  return current;
}
int64_t structured_list(const at::ITensorListRef&) {
  return current;
}
int64_t optionals(const std::optional<at::Tensor>&, const c10::List<std::optional<at::Tensor>>&) {
  return current;
}
int64_t factory(const at::Tensor&, std::optional<at::Device>) {
  return current;
}
int64_t failing(const at::Tensor&) {
  throw std::runtime_error("on purpose");
}

struct Traits {
  static constexpr const char* kArguments = "";
  static constexpr bool kOneDevice = false;
  static constexpr auto kInputs = backendkit::Inputs::kStrided;
  static constexpr auto kDtypes = backendkit::Dtypes::all();
  static constexpr auto kUnsupported = backendkit::Unsupported::kFallback;
};

template <class Signature, Signature* function, class Order>
constexpr Signature* kernel() {
  return &backendkit::Unstructured<"f", Traits, Order, Signature, function>::call;
}

void show(std::string_view what, int64_t device) {
  std::cout << what << ": " << device << '\n';
}

}  // namespace

void backendkit::call_fallback(const c10::OperatorHandle&, torch::jit::Stack*) {}

int main() {
  using backendkit::DeviceOf;
  const at::Tensor cpu = on(c10::Device(c10::kCPU));
  at::Tensor two = on(2);
  at::Tensor three = on(3);
  at::Tensor none;

  const auto call = kernel<decltype(binary), &binary, DeviceOf<0, 2, 1>>();
  show("self, then out, then the other", call(on(1), three, two));
  show("a tensor on the CPU tells nothing", call(cpu, three, two));
  show("an undefined tensor tells nothing", call(cpu, three, none));

  const std::vector<at::Tensor> tensors = {none, cpu, on(1)};
  show("a list", kernel<decltype(list), &list, DeviceOf<0>>()(tensors));
  const auto structured = kernel<decltype(structured_list), &structured_list, DeviceOf<0>>();
  show("a list of a structured kernel", structured({two, on(1)}));
  c10::List<std::optional<at::Tensor>> maybe;
  maybe.push_back(std::nullopt);
  maybe.push_back(three);
  const auto either = kernel<decltype(optionals), &optionals, DeviceOf<0, 1>>();
  show("a list of optional tensors", either(std::nullopt, maybe));

  const auto make = kernel<decltype(factory), &factory, DeviceOf<1, 0>>();
  show("the device of a factory", make(on(1), c10::Device(c10::DeviceType::PrivateUse1, 2)));
  show("the current device, without an index",
       make(cpu, c10::Device(c10::DeviceType::PrivateUse1)));
  show("nothing of ours", make(cpu, c10::Device(c10::kCPU)));
  show("restored", current);
  try {
    kernel<decltype(failing), &failing, DeviceOf<0>>()(two);
    return 1;
  } catch (const std::runtime_error&) {
    show("restored after an exception", current);
  }
  return 0;
}
