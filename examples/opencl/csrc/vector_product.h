#pragma once

#include "product.h"

namespace ocl {

/// `multiply` where one factor is a vector, and the matrix lies in memory so that a result is a
/// product of two dense rows. Returns false, having done nothing, for everything else.
bool multiply_vector(const char* op, const Sizes& sizes, const Matrix& out, const Matrix& a,
                     const Matrix& b, const Matrix* added, const at::Scalar& alpha,
                     const at::Scalar& beta);

}  // namespace ocl
