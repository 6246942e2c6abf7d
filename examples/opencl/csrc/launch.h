#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include "devices.h"

namespace ocl {

/// A kernel's variant: the file below csrc/kernels, the function in it, the expression if the
/// family has them, and a number that stands for the macros with which it is compiled. Texts are
/// told by their addresses.
struct Variant {
  const char* family;
  const char* function;
  const char* expression;
  std::uint64_t macros;

  bool operator==(const Variant&) const = default;
};

/// A kernel, and the small arguments that it has: those that stay the same are not set again.
struct KnownKernel {
  struct Argument {
    std::size_t size = 0;  ///< 0: not known
    std::uint64_t bits = 0;

    bool operator==(const Argument&) const = default;
  };

  OwnKernel kernel;
  std::vector<Argument> arguments;
};

/// One launch of a kernel on the current stream of a device, which is the current one. Set the
/// arguments in their order, and then `run`. Kernels belong to a thread, so nothing is locked.
class Launch {
 public:
  /// `op` names the operator in errors. `defines` returns the macros, a line each; it is called
  /// when this thread uses the variant for the first time.
  template <class Defines>
  Launch(const char* op, int device, const Variant& variant, const Defines& defines)
      : Launch(op, device) {
    // Some drivers read the arguments of a recorded command when it runs: it has its own kernel.
    if (queue_.recording()) {
      own_ = made(device, variant, defines());
      kernel_ = own_.get();
      return;
    }
    known_ = known(device, variant);
    if (known_ == nullptr) known_ = keep(device, variant, made(device, variant, defines()));
    kernel_ = known_->kernel.get();
  }

  /// Whether it becomes a part of a graph, and does not run now.
  bool recorded() const { return known_ == nullptr; }

  /// A tensor: the address, and the number of its first element there. A null one, if it is not
  /// defined. It has to live until the launch is queued: else another tensor may get its memory.
  Launch& tensor(at::Tensor&& tensor) = delete;
  Launch& tensor(const at::Tensor& tensor) {
    return tensor.defined() ? address(tensor.const_data_ptr(), tensor.itemsize())
                            : address(nullptr, 1);
  }

  /// The same for a tensor that the kernel writes: set it before the tensors that it only reads,
  /// which may share memory with it until it is written.
  Launch& output(at::Tensor&& tensor) = delete;
  Launch& output(const at::Tensor& tensor) {
    return tensor.defined() ? address(tensor.mutable_data_ptr(), tensor.itemsize())
                            : address(nullptr, 1);
  }

  /// The same for elements of a size.
  Launch& address(const void* address, std::size_t itemsize);

  template <class Value>
  Launch& value(const Value& value) {
    return bytes(sizeof value, &value);
  }

  /// A number, in the dtype in which a kernel computes with a tensor's.
  Launch& number(const at::Scalar& number, c10::ScalarType type);

  /// The memory for an index that is out of range, and the operator's name: see faults.h.
  Launch& faults();

  /// Queues it for so many elements, of which a work item computes one or more.
  void run_for(std::size_t elements);

  /// Queues a kernel that includes kernels/rows.cl, for jobs of so many elements each; a team of
  /// `team` work items takes one or more of them.
  void run_jobs(std::int64_t jobs, std::int64_t elements, int team);

  /// Queues it for work groups of a size.
  void run(const std::array<std::size_t, 3>& groups, const std::array<std::size_t, 3>& group);

 private:
  Launch(const char* op, int device);

  static KnownKernel* known(int device, const Variant& variant);
  static OwnKernel made(int device, const Variant& variant, const std::string& defines);
  static KnownKernel* keep(int device, const Variant& variant, OwnKernel kernel);
  Launch& bytes(std::size_t size, const void* value);
  Launch& memory(cl_mem buffer);

  const char* const op_;
  Device& device_;
  Queue& queue_;
  cl_kernel kernel_ = nullptr;
  KnownKernel* known_ = nullptr;    ///< null if the launch is recorded
  OwnKernel own_;                   ///< until the graph has it, if the launch is recorded
  std::shared_ptr<Faults> faults_;  ///< null if the kernel has no indices
  cl_uint next_ = 0;
};

}  // namespace ocl
