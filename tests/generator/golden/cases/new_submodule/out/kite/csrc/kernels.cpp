#include "kernels.h"

#include "runtime.h"

// Your kernels. Every operator works without one: it runs on the CPU. To write one yourself, name it in
// [operators.kernels] of backend.toml, for example
//
//   "mm.out" = "kite::mm"
//
// build, and define here what the generated kernels.h then declares:
//
//   void kite::mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) { ... }
//
// PyTorch has checked the shapes and made `out` by then, for `a @ b` too: the function computes.
// It begins its work on the current stream and does not wait for it; on the simulator,
//
//   const float* from = simulator::inside(self.const_data_ptr<float>());
//   float* to = simulator::inside(out.mutable_data_ptr<float>());
//   launch([=, count = out.numel()] { for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor; });
//
// Define it with its namespace in front, as here: a signature that differs from kernels.h is then a
// compile error.
