#include "blas.h"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include <dlfcn.h>

#include <backendkit/handles.h>
#include <backendkit/stream.h>

#include "runtime.h"

namespace ocl {

namespace {

// What is used of <clblast_c.h>, which need not be there when this is compiled.
enum class Layout : int { kRowMajor = 101 };
enum class Transpose : int { kNo = 111, kYes = 112 };
using Sgemm = int (*)(Layout, Transpose, Transpose, std::size_t m, std::size_t n, std::size_t k,
                      float alpha, cl_mem a, std::size_t a_offset, std::size_t a_line, cl_mem b,
                      std::size_t b_offset, std::size_t b_line, float beta, cl_mem c,
                      std::size_t c_offset, std::size_t c_line, cl_command_queue*, cl_event*);
using SgemmStridedBatched = int (*)(Layout, Transpose, Transpose, std::size_t m, std::size_t n,
                                    std::size_t k, float alpha, cl_mem a, std::size_t a_offset,
                                    std::size_t a_line, std::size_t a_batch, cl_mem b,
                                    std::size_t b_offset, std::size_t b_line, std::size_t b_batch,
                                    float beta, cl_mem c, std::size_t c_offset, std::size_t c_line,
                                    std::size_t c_batch, std::size_t batches, cl_command_queue*,
                                    cl_event*);

struct Library {
  Sgemm sgemm = nullptr;
  SgemmStridedBatched sgemm_batched = nullptr;

  bool found() const { return sgemm != nullptr && sgemm_batched != nullptr; }
};

/// CLBlast calls the same OpenCL loader as this library.
const Library& library() {
  static const Library found = [] {
    Library all;
    void* const handle = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return all;
    all.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "CLBlastSgemm"));
    all.sgemm_batched =
        reinterpret_cast<SgemmStridedBatched>(dlsym(handle, "CLBlastSgemmStridedBatched"));
    return all;
  }();
  return found;
}

/// A matrix as BLAS has it: dense rows, or dense columns, which are the rows of the transposed one.
struct Operand {
  Transpose transpose = Transpose::kNo;
  std::size_t line = 0;
  cl_mem buffer = nullptr;
  std::size_t offset = 0;  ///< in elements
  std::size_t batch = 0;
};

std::optional<Operand> operand(Device& device, const Matrix& matrix, std::int64_t rows,
                               std::int64_t columns, bool written = false) {
  const Strides& strides = matrix.strides;
  Operand one;
  if ((strides.column == 1 || columns == 1) && (strides.row >= columns || rows == 1)) {
    one.line = static_cast<std::size_t>(rows == 1 ? columns : strides.row);
  } else if ((strides.row == 1 || rows == 1) && (strides.column >= rows || columns == 1)) {
    one.transpose = Transpose::kYes;
    one.line = static_cast<std::size_t>(columns == 1 ? rows : strides.column);
  } else {
    return std::nullopt;
  }
  one.batch = static_cast<std::size_t>(strides.batch);
  const void* const address =
      written ? matrix.tensor.mutable_data_ptr() : matrix.tensor.const_data_ptr();
  std::size_t bytes = 0;
  if (device.svm) {
    std::tie(one.buffer, bytes) = device.svm_buffers.at(device.context, address);
  } else {
    const backendkit::Location place = backendkit::locate(address);
    one.buffer = static_cast<cl_mem>(place.handle);
    bytes = place.offset;
  }
  one.offset = bytes / sizeof(float);
  return one;
}

at::Tensor as_batch(const Matrix& matrix, const Sizes& sizes) {
  const Strides& strides = matrix.strides;
  return matrix.tensor.as_strided({sizes.batches, sizes.m, sizes.n},
                                  {strides.batch, strides.row, strides.column});
}

}  // namespace

bool uses_blas(const Device& device) {
  const std::string wish = variable("OPENCL_BLAST");
  if (wish == "own") return false;
  if (wish == "clblast") {
    if (library().found()) return true;
    throw std::runtime_error("OPENCL_BLAST=clblast: there is no libclblast.so.1");
  }
  if (!wish.empty())
    throw std::runtime_error("OPENCL_BLAST=" + wish + ": it is `clblast` or `own`");
  return !device.is_cpu && library().found();
}

bool multiply_with_blas(const char* op, Device& device, const Sizes& sizes, const Matrix& out,
                        const Matrix& a, const Matrix& b, const Matrix* added,
                        const at::Scalar& alpha, const at::Scalar& beta) {
  const bool plain = sizes.groups == 1 && sizes.sums == 1 && sizes.k > 0 && a.window == nullptr &&
                     b.window == nullptr && a.tensor.scalar_type() == c10::ScalarType::Float &&
                     out.tensor.scalar_type() == c10::ScalarType::Float;
  const int index = out.tensor.device().index();
  Queue& stream = queue_of(backendkit::current_stream<Runtime>(index), index);
  if (!device.blas || !plain || stream.recording()) return false;
  const auto c = operand(device, out, sizes.m, sizes.n, true);
  const auto left = operand(device, a, sizes.m, sizes.k);
  const auto right = operand(device, b, sizes.k, sizes.n);
  if (!c || !left || !right || c->transpose == Transpose::kYes) return false;
  if (added != nullptr) as_batch(out, sizes).copy_(as_batch(*added, sizes));
  const float scale = alpha.to<float>(), kept = added == nullptr ? 0 : beta.to<float>();
  const auto [m, n, k, batches] =
      std::array{static_cast<std::size_t>(sizes.m), static_cast<std::size_t>(sizes.n),
                 static_cast<std::size_t>(sizes.k), static_cast<std::size_t>(sizes.batches)};
  stream.add(op,
             [&, m = m, n = n, k = k, batches = batches](cl_command_queue queue,
                                                         cl_event* event) -> cl_int {
               if (batches == 1) {
                 return library().sgemm(Layout::kRowMajor, left->transpose, right->transpose, m, n,
                                        k, scale, left->buffer, left->offset, left->line,
                                        right->buffer, right->offset, right->line, kept, c->buffer,
                                        c->offset, c->line, &queue, event);
               }
               return library().sgemm_batched(Layout::kRowMajor, left->transpose, right->transpose,
                                              m, n, k, scale, left->buffer, left->offset,
                                              left->line, left->batch, right->buffer, right->offset,
                                              right->line, right->batch, kept, c->buffer, c->offset,
                                              c->line, c->batch, batches, &queue, event);
             });
  return true;
}

}  // namespace ocl
