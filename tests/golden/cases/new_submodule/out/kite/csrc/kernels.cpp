#include "kernels.h"

// Your kernels. Every operator works without one: it runs on the CPU. To write one yourself, name it in
// [operators.kernels] of backend.toml, for example
//
//   "relu" = "kite::relu"
//
// build, and define here what the generated kernels.h then declares:
//
//   at::Tensor kite::relu(const at::Tensor& self) { ... }
//
// Define it with its namespace in front, as here: a signature that differs from kernels.h is then a
// compile error.
