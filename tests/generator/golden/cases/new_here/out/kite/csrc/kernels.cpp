#include "kernels.h"

#include "runtime.h"

// Your kernels. An operator without one runs on the CPU. To write a kernel, name its operator in
// [operators.kernels] in backend.toml, for example
//
//   "mm.out" = "kite::mm"
//
// then build, and define here the function that the generated kernels.h declares:
//
//   void kite::mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) { ... }
//
// Before the call, PyTorch has checked the shapes and created `out`, for `a @ b` too. The function
// only fills in the values. It queues its work on the current stream and does not wait for it. With
// the simulator, an elementwise kernel looks like this:
//
//   const float* from = simulator::inside(self.const_data_ptr<float>());
//   float* to = simulator::inside(out.mutable_data_ptr<float>());
//   launch([=, count = out.numel()] { for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor; });
//
// Define it with its qualified name, as shown: then a signature that differs from kernels.h is a
// compile error.
