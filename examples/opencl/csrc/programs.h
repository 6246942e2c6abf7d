#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "devices.h"

namespace ocl {

/// The text of csrc/kernels/NAME.cl, which is a part of the library.
std::string_view source_of(std::string_view name);

/// A program of the kernels in csrc/kernels/`family`.cl, for the macros that `defines` has.
/// Compiles it at its first use in the process, unless an earlier process did. Throws what the
/// compiler says.
///
/// What was compiled is kept in the folder `OPENCL_CACHE`, by default ~/.cache/torch_opencl, or
/// nowhere with OPENCL_CACHE=off. A file that is damaged, or of another driver, is made again.
cl_program program_of(Device& device, const char* family, const std::string& defines);

}  // namespace ocl
