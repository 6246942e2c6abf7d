#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "dtypes.h"
#include "launch.h"

namespace ocl {

/// A macro of a kernel that stands for a dtype. Without one, the macro is not defined.
struct Kind {
  const char* macro;
  c10::ScalarType dtype = c10::ScalarType::Undefined;

  Kind(const char* name, c10::ScalarType type) : macro(name), dtype(type) {}
  Kind(const char* name, const at::Tensor& tensor)
      : macro(name),
        dtype(tensor.defined() ? tensor.scalar_type() : c10::ScalarType::Undefined) {}
};

/// A launch of a kernel that includes kernels/rows.cl, for rows of a length.
class RowLaunch : public Launch {
 public:
  /// `texts` are macros besides, a line each, that `expression` and `turn`, below 8, stand for.
  RowLaunch(const char* op, int device, const char* family, const char* function,
            std::int64_t length, std::initializer_list<Kind> kinds, const char* expression = "",
            const std::string& texts = "", unsigned turn = 0)
      : Launch(op, device,
               {family, function, expression,
                number_of_kinds(kinds) << 12 | turn << 9 |
                    static_cast<unsigned>(team_of(device, length))},
               [&] { return lines_of(kinds, team_of(device, length)) + texts; }),
        length_(length),
        team_(team_of(device, length)) {}

  /// Queues it. A job may be several rows.
  void run(std::int64_t jobs, std::int64_t rows = 1) {
    run_jobs(jobs, rows * std::max<std::int64_t>(length_, 1), team_);
  }

 private:
  static int team_of(int device, std::int64_t length) {
    if (device_at(device).is_cpu || length <= 1) return 1;
    return length <= 16 ? 8 : length <= 128 ? 32 : 256;
  }

  static std::uint64_t number_of_kinds(std::initializer_list<Kind> kinds) {
    std::uint64_t number = 1;
    for (const Kind& kind : kinds) {
      const bool defined = kind.dtype != c10::ScalarType::Undefined;
      number = number << 4 | (defined ? static_cast<unsigned>(dtype_of(kind.dtype).code) : 15U);
    }
    return number;
  }

  static std::string lines_of(std::initializer_list<Kind> kinds, int team) {
    std::string lines = "#define TEAM " + std::to_string(team) + "\n";
    for (const Kind& kind : kinds) {
      if (kind.dtype == c10::ScalarType::Undefined) continue;
      lines += std::string("#define ") + kind.macro + " " + dtype_of(kind.dtype).name + "\n";
    }
    return lines;
  }

  std::int64_t length_;
  int team_;
};

/// The dtype in which kernels compute sums of numbers of a dtype.
inline c10::ScalarType sum_dtype(c10::ScalarType type) {
  return is_floating(type) ? c10::ScalarType::Float : c10::ScalarType::Long;
}

}  // namespace ocl
