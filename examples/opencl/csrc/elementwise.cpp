#include "elementwise.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorIterator.h>

#include "dtypes.h"
#include "launch.h"

namespace ocl {

namespace {

constexpr int kMostInputs = 3;
constexpr int kMostDimensions = 8;
constexpr std::array kNames = {"A", "B", "C"};

/// The tensors' dimensions, the fastest first, as few as possible: neighbours that lie one after
/// the other in all tensors are one.
struct Dimensions {
  struct Dimension {
    std::int64_t size = 1;
    std::array<std::int64_t, kMostInputs + 1> strides{};  ///< of the result, then of the inputs
  };

  std::array<Dimension, kMostDimensions> all{};
  int rank = 0;
  bool fits = true;  ///< whether there are at most kMostDimensions

  Dimensions(const at::Tensor& out, const std::vector<const at::Tensor*>& inputs) {
    c10::SmallVector<Dimension, kMostDimensions> found;
    for (std::int64_t place = out.dim() - 1; place >= 0; --place) {
      if (out.size(place) == 1) continue;
      Dimension one{.size = out.size(place)};
      one.strides[0] = out.stride(place);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::int64_t own = place - (out.dim() - inputs[i]->dim());
        const bool broadcast = own < 0 || inputs[i]->size(own) == 1;
        one.strides[i + 1] = broadcast ? 0 : inputs[i]->stride(own);
      }
      found.push_back(one);
    }
    std::stable_sort(found.begin(), found.end(), [](const Dimension& a, const Dimension& b) {
      return a.strides[0] < b.strides[0];
    });
    for (const Dimension& one : found) {
      if (rank > 0 && follows(all[rank - 1], one)) {
        all[rank - 1].size *= one.size;
      } else if (rank < kMostDimensions) {
        all[rank++] = one;
      } else {
        fits = false;
        return;
      }
    }
  }

  /// Whether every tensor is one dense row, all in the same order.
  bool dense(std::size_t inputs) const {
    if (rank == 0) return true;
    if (rank > 1) return false;
    const auto end = all[0].strides.begin() + static_cast<std::ptrdiff_t>(inputs) + 1;
    return std::all_of(all[0].strides.begin(), end, [](std::int64_t one) { return one == 1; });
  }

  /// Whether all offsets of elements fit into 32 bits.
  bool small() const {
    for (std::size_t tensor = 0; tensor <= kMostInputs; ++tensor) {
      std::int64_t last = 0;
      for (int i = 0; i < rank; ++i) last += (all[i].size - 1) * all[i].strides[tensor];
      if (last >= std::numeric_limits<std::int32_t>::max()) return false;
    }
    return true;
  }

 private:
  static bool follows(const Dimension& inner, const Dimension& outer) {
    for (std::size_t i = 0; i < inner.strides.size(); ++i) {
      if (outer.strides[i] != inner.strides[i] * inner.size) return false;
    }
    return true;
  }
};

/// `Layout` of kernels/elementwise.cl.
template <class Index>
struct Layout {
  std::array<Index, kMostDimensions> sizes;
  std::array<std::array<Index, kMostDimensions>, kMostInputs + 1> strides;

  explicit Layout(const Dimensions& dimensions) {
    for (std::size_t i = 0; i < kMostDimensions; ++i) {
      sizes[i] = static_cast<Index>(dimensions.all[i].size);
      for (std::size_t tensor = 0; tensor < strides.size(); ++tensor) {
        strides[tensor][i] = static_cast<Index>(dimensions.all[i].strides[tensor]);
      }
    }
  }
};

bool is_number(const at::Tensor& tensor) { return tensor.dim() == 0 && tensor.is_cpu(); }

/// The function of kernels/elementwise.cl that rounds numbers of a dtype to one of 16 bits, or
/// nothing if they are in it.
const char* rounding(c10::ScalarType from, c10::ScalarType to) {
  if (from == to || from == c10::ScalarType::Bool) return "";
  return to == c10::ScalarType::Half ? "as_f16" : to == c10::ScalarType::BFloat16 ? "as_bf16" : "";
}

/// Too many dimensions for a kernel: one after the other, by the first.
void by_parts(const Expression& expression, c10::ScalarType number, const at::Tensor& out,
              const std::vector<const at::Tensor*>& inputs, const at::Scalar& x,
              const at::Scalar& y);

void run(const Expression& expression, c10::ScalarType number, const at::Tensor& out,
         const std::vector<const at::Tensor*>& inputs, const at::Scalar& x, const at::Scalar& y) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const Dimensions dimensions(out, inputs);
  if (!dimensions.fits) return by_parts(expression, number, out, inputs, x, y);
  const bool dense = dimensions.dense(inputs.size());
  const bool small = dimensions.small();
  const int rank = dense ? 0 : dimensions.rank;
  std::uint64_t macros = inputs.size();
  const auto add = [&](unsigned value) { macros = macros << 4 | value; };
  add(static_cast<unsigned>(rank));
  add(small ? 1 : 0);
  add(static_cast<unsigned>(dtype_of(out.scalar_type()).code));
  add(static_cast<unsigned>(dtype_of(number).code));
  for (const at::Tensor* const input : inputs) {
    add(is_number(*input) ? 8 : static_cast<unsigned>(dtype_of(input->scalar_type()).code));
  }
  const Variant variant{"elementwise", "elementwise", expression.text, macros};
  Launch launch(expression.op, out.device().index(), variant, [&] {
    std::string defines = "#define INPUTS " + std::to_string(inputs.size()) + "\n";
    const auto define = [&](const std::string& name, const std::string& value) {
      defines += "#define " + name + " " + value + "\n";
    };
    define("RANK", std::to_string(rank));
    define("INDEX", small ? "int" : "long");
    define("OUT", dtype_of(out.scalar_type()).name);
    define("NUMBER", dtype_of(number).name);
    define("AS_RESULT", rounding(out.scalar_type(), number));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_number(*inputs[i])) {
        define(std::string("NUMBER_") + kNames[i], "1");
      } else {
        define(kNames[i], dtype_of(inputs[i]->scalar_type()).name);
        define(std::string("AS_NUMBER_") + kNames[i], rounding(inputs[i]->scalar_type(), number));
      }
    }
    define("EXPRESSION", expression.text);
    return defines;
  });
  if (small) {
    launch.value(static_cast<std::int32_t>(count));
    if (!dense) launch.value(Layout<std::int32_t>(dimensions));
  } else {
    launch.value(count);
    if (!dense) launch.value(Layout<std::int64_t>(dimensions));
  }
  launch.number(x, number);
  launch.number(y, number);
  launch.output(out);
  for (const at::Tensor* const input : inputs) {
    if (is_number(*input)) {
      launch.number(as_element(value_of(*input), number), number);
    } else {
      launch.tensor(*input);
    }
  }
  launch.run_for(static_cast<std::size_t>(count));
}

void by_parts(const Expression& expression, c10::ScalarType number, const at::Tensor& out,
              const std::vector<const at::Tensor*>& inputs, const at::Scalar& x,
              const at::Scalar& y) {
  for (std::int64_t place = 0; place < out.size(0); ++place) {
    std::vector<at::Tensor> parts;
    for (const at::Tensor* const input : inputs) {
      const bool whole = input->dim() < out.dim();
      parts.push_back(whole ? *input : input->select(0, input->size(0) == 1 ? 0 : place));
    }
    std::vector<const at::Tensor*> pointers;
    for (const at::Tensor& part : parts) pointers.push_back(&part);
    run(expression, number, out.select(0, place), pointers, x, y);
  }
}

/// Adds the inputs of an elementwise operator, as this file's kernels take them.
void add_inputs(at::TensorIteratorConfig& config, std::initializer_list<const at::Tensor*> inputs) {
  for (const at::Tensor* const input : inputs) config.add_const_input(*input);
  config.allow_cpu_scalars(true).check_all_same_dtype(false);
}

}  // namespace

void elementwise(const Expression& expression, c10::ScalarType number, const at::Tensor& out,
                 std::initializer_list<const at::Tensor*> inputs, const at::Scalar& x,
                 const at::Scalar& y) {
  run(expression, number, out, inputs, x, y);
}

at::Scalar wrapped(const at::Scalar& value, c10::ScalarType type) {
  if (type == at::kBool) return value;
  if (type != at::kInt && type != at::kLong) return static_cast<float>(value.toDouble());
  const std::int64_t whole = value.type() == c10::ScalarType::UInt64
                                 ? static_cast<std::int64_t>(value.toUInt64())
                                 : value.to<std::int64_t>();
  return type == at::kInt ? static_cast<std::int32_t>(whole) : whole;
}

at::Scalar as_element(const at::Scalar& value, c10::ScalarType type) {
  const at::Scalar number = wrapped(value, type);
  if (type == at::kHalf) return static_cast<float>(c10::Half(number.to<float>()));
  if (type == at::kBFloat16) return static_cast<float>(c10::BFloat16(number.to<float>()));
  return number;
}

at::Scalar written(const at::Scalar& value, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
      return static_cast<float>(value.to<c10::Half>());
    case c10::ScalarType::BFloat16:
      return static_cast<float>(value.to<c10::BFloat16>());
    case c10::ScalarType::Float:
      return value.to<float>();
    case c10::ScalarType::Int:
      return value.to<std::int32_t>();
    case c10::ScalarType::Long:
      return value.to<std::int64_t>();
    default:
      return value;
  }
}

at::Tensor number_for(const at::Tensor& self, const at::Tensor& value) {
  const bool elsewhere = !value.is_cpu() && value.device() != self.device();
  const at::Tensor number = elsewhere ? value.to(self.device()) : value;
  return self.scalar_type() == at::kBool ? number.to(at::kBool) : number;
}

at::Scalar value_of(const at::Tensor& number) {
  const void* const place = number.const_data_ptr();
  switch (number.scalar_type()) {
    case c10::ScalarType::Double:
      return *static_cast<const double*>(place);
    case c10::ScalarType::Float:
      return *static_cast<const float*>(place);
    case c10::ScalarType::Long:
      return *static_cast<const std::int64_t*>(place);
    case c10::ScalarType::Bool:
      return *static_cast<const bool*>(place);
    default:
      return number.item();
  }
}

at::Tensor result_of(c10::ScalarType type, std::initializer_list<const at::Tensor*> inputs) {
  at::TensorIteratorConfig config;
  config.add_owned_output(at::Tensor());
  add_inputs(config, inputs);
  c10::Device device = at::kCPU;
  for (const at::Tensor* const input : inputs) {
    if (!input->is_cpu()) device = input->device();
  }
  config.declare_static_dtype_and_device(type, device);
  return config.build().output();
}

void resize_result(const at::Tensor& out, std::initializer_list<const at::Tensor*> inputs) {
  at::TensorIteratorConfig config;
  config.add_output(out);
  add_inputs(config, inputs);
  config.build();
}

}  // namespace ocl
