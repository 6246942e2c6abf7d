#pragma once

#include "devices.h"
#include "product.h"

namespace ocl {

/// Whether a device's products of matrices are CLBlast's, an OpenCL library that is found when the
/// program runs. OPENCL_BLAST=clblast or =own chooses; by default GPUs use it where it is
/// installed. On a CPU the kernel of csrc/kernels/matmul.cl is several times as fast. Throws for
/// another value of the variable, and for `clblast` where that is not installed.
bool uses_blas(const Device& device);

/// `multiply` by CLBlast. Returns false, having done nothing, if the device does not use it, or for
/// what it does not take: other dtypes than float32, groups, windows, rows and columns that are
/// both apart, and in a graph, where it cannot be recorded.
bool multiply_with_blas(const char* op, Device& device, const Sizes& sizes, const Matrix& out,
                        const Matrix& a, const Matrix& b, const Matrix* added,
                        const at::Scalar& alpha, const at::Scalar& beta);

}  // namespace ocl
