// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/quantized/QTensorImpl.h>

#include <backendkit/fallback/host_memory.h>
#include <backendkit/nested.h>
#include <backendkit/profiler/operator_times.h>

namespace backendkit {

/// The tensors of one operator that the CPU computes for the device, with any layout: the arguments
/// on the host, and the results on the device. A sparse tensor consists of its indices and values,
/// a nested one of its buffer.
///
/// Call in this order: `note` for all arguments, `bring`, `host` for each; run the operator;
/// `take_back` for the tensors that it wrote and `note_result` for the others, `send`, `finish` for
/// the written ones, `result` for each result. Do not note results that stay where the operator
/// created them.
template <class Runtime>
class HostTensors {
 public:
  using Use = typename HostMemory<Runtime>::Use;

  explicit HostTensors(c10::Device device) : memory_(device) {}

  static bool is_ours(const at::Tensor& tensor) {
    return tensor.defined() && tensor.device().type() == kDeviceType;
  }

  void note(const at::Tensor& tensor, Use use) {
    if (!is_ours(tensor)) return;
    each_part(tensor, [&](const at::Tensor& part) { memory_.note(part, use); });
  }

  void bring() {
    const std::int64_t start = now_ns();
    memory_.bring();
    copying_ += now_ns() - start;
  }

  /// What the CPU receives for an argument: the same object each time the tensor is an argument.
  at::Tensor host(const at::Tensor& tensor) {
    if (!is_ours(tensor)) return tensor;
    for (const auto& [ours, host] : arguments_) {
      if (ours.is_same(tensor)) return host;
    }
    at::Tensor made = moved(tensor, c10::kCPU, kHostKeys,
                            [&](const at::Tensor& part) { return memory_.host(part); });
    arguments_.emplace_back(tensor, made);
    return made;
  }

  void take_back(const at::Tensor& tensor) {
    if (!is_ours(tensor)) return;
    const at::Tensor made = host(tensor);
    if (is_plain(tensor)) {
      memory_.take_back(tensor, made);
      return;
    }
    if (tensor.is_quantized()) {
      quantized(tensor)->set_quantizer_(quantized(made)->quantizer());
      memory_.take_back(tensor, made);
      return;
    }
    each_part(made, [&](const at::Tensor& part) { memory_.note_result(part); });
  }

  void note_result(const at::Tensor& result) {
    if (!result.defined() || is_argument(result) || result._is_zerotensor()) return;
    each_part(result, [&](const at::Tensor& part) { memory_.note_result(part); });
  }

  void send() {
    const std::int64_t start = now_ns();
    memory_.send();
    copying_ += now_ns() - start;
  }

  /// Gives a sparse device tensor that was written its new parts.
  void finish(const at::Tensor& tensor) {
    if (!is_ours(tensor) || tensor.layout() == at::kStrided) return;
    const at::Tensor made = host(tensor);
    const auto there = [&](const at::Tensor& part) { return memory_.on_device(part); };
    if (tensor.layout() == at::kSparse) {
      const auto* from = coo(made);
      coo(tensor)->raw_resize_(from->sparse_dim(), from->dense_dim(), made.sizes());
      fill(tensor, there(from->indices()), there(from->values()), from->coalesced());
    } else {
      const auto* from = csr(made);
      csr(tensor)->set_member_tensors(there(from->compressed_indices()),
                                      there(from->plain_indices()), there(from->values()),
                                      made.sizes());
    }
  }

  /// A result, on this backend's device or where the operator created it; if it is an argument,
  /// that argument itself.
  at::Tensor result(const at::Tensor& result, c10::Device device) {
    if (!result.defined()) return result;
    for (const auto& [ours, host] : arguments_) {
      if (host.is_same(result)) return ours;
    }
    if (device.type() != kDeviceType) return result;
    if (result._is_zerotensor()) return at::zeros(result.sizes(), result.options().device(device));
    return moved(result, device, kDeviceKeys,
                 [&](const at::Tensor& part) { return memory_.on_device(part); });
  }

  std::size_t copied() const { return memory_.copied(); }

  /// The nanoseconds of `bring` and `send`, with the wait for work that the device had to do first.
  std::int64_t copying() const { return copying_; }

 private:
  /// The dispatch keys for a tensor's layout.
  struct Keys {
    c10::DispatchKey coo;
    c10::DispatchKey compressed;
    c10::DispatchKey quantized;
  };

  static constexpr Keys kHostKeys{c10::DispatchKey::SparseCPU, c10::DispatchKey::SparseCsrCPU,
                                  c10::DispatchKey::QuantizedCPU};
  static constexpr Keys kDeviceKeys{c10::DispatchKey::SparsePrivateUse1,
                                    c10::DispatchKey::SparseCsrPrivateUse1,
                                    c10::DispatchKey::QuantizedPrivateUse1};

  static bool is_plain(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested();
  }

  static bool is_compressed(at::Layout layout) {
    return layout == at::kSparseCsr || layout == at::kSparseCsc || layout == at::kSparseBsr ||
           layout == at::kSparseBsc;
  }

  static at::SparseTensorImpl* coo(const at::Tensor& tensor) {
    return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  }
  static at::SparseCsrTensorImpl* csr(const at::Tensor& tensor) {
    return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
  }
  static at::QTensorImpl* quantized(const at::Tensor& tensor) {
    return static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
  }

  /// Calls `visit` for the strided tensors that a tensor consists of.
  template <class Visit>
  static void each_part(const at::Tensor& tensor, Visit&& visit) {
    if (Nested::is(tensor)) {
      visit(Nested::buffer(tensor));
    } else if (tensor.layout() == at::kStrided) {
      visit(tensor);
    } else if (tensor.layout() == at::kSparse) {
      visit(coo(tensor)->indices());
      visit(coo(tensor)->values());
    } else if (is_compressed(tensor.layout())) {
      visit(csr(tensor)->compressed_indices());
      visit(csr(tensor)->plain_indices());
      visit(csr(tensor)->values());
    } else {
      TORCH_CHECK_NOT_IMPLEMENTED(false, c10::DeviceTypeName(kDeviceType, true),
                                  " does not support tensors of layout ", tensor.layout());
    }
  }

  static void fill(const at::Tensor& tensor, const at::Tensor& indices, const at::Tensor& values,
                   bool coalesced) {
    coo(tensor)->set_indices_and_values_unsafe(indices, values);
    coo(tensor)->set_coalesced(coalesced);
  }

  /// A tensor with the same layout, made of `move` applied to its parts.
  template <class Move>
  static at::Tensor moved(const at::Tensor& tensor, c10::Device device, const Keys& keys,
                          Move&& move) {
    if (is_plain(tensor)) return move(tensor);
    if (Nested::is(tensor)) return Nested::like(tensor, move(Nested::buffer(tensor)));
    if (tensor.is_quantized()) {
      const at::Tensor plain = move(tensor);
      at::Tensor made = at::detail::make_tensor<at::QTensorImpl>(
          c10::Storage(plain.storage()), c10::DispatchKeySet(keys.quantized), tensor.dtype(),
          quantized(tensor)->quantizer());
      made.unsafeGetTensorImpl()->set_sizes_and_strides(plain.sizes(), plain.strides(),
                                                        plain.storage_offset());
      return made;
    }
    if (tensor.layout() == at::kSparse) {
      at::Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(keys.coo),
                                                                      tensor.dtype());
      coo(made)->raw_resize_(coo(tensor)->sparse_dim(), coo(tensor)->dense_dim(), tensor.sizes());
      fill(made, move(coo(tensor)->indices()), move(coo(tensor)->values()),
           coo(tensor)->coalesced());
      return made;
    }
    at::Tensor made = at::detail::make_tensor<at::SparseCsrTensorImpl>(
        c10::DispatchKeySet(keys.compressed), device, tensor.layout(), tensor.dtype());
    csr(made)->set_member_tensors(move(csr(tensor)->compressed_indices()),
                                  move(csr(tensor)->plain_indices()), move(csr(tensor)->values()),
                                  tensor.sizes());
    return made;
  }

  bool is_argument(const at::Tensor& result) const {
    for (const auto& [ours, host] : arguments_) {
      if (host.is_same(result)) return true;
    }
    return false;
  }

  HostMemory<Runtime> memory_;
  std::int64_t copying_ = 0;
  std::vector<std::pair<at::Tensor, at::Tensor>> arguments_;
};

}  // namespace backendkit
