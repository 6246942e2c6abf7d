#include "opencl.h"

#include <array>
#include <cstdlib>
#include <stdexcept>

#include <dlfcn.h>

namespace ocl {

namespace {

const Api* load() {
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static Api all;
  bool complete = true;
#define OPENCL_FIND(name) all.name = reinterpret_cast<decltype(all.name)>(dlsym(library, #name));
#define OPENCL_REQUIRE(name) OPENCL_FIND(name) complete = complete && all.name != nullptr;
  OPENCL_FUNCTIONS(OPENCL_REQUIRE)
  OPENCL_NEWER_FUNCTIONS(OPENCL_FIND)
#undef OPENCL_REQUIRE
#undef OPENCL_FIND
  return complete ? &all : nullptr;
}

struct Name {
  cl_int status;
  const char* text;
};

#define OPENCL_NAME(status) \
  Name { status, #status }
constexpr std::array kNames = {
    OPENCL_NAME(CL_DEVICE_NOT_FOUND),
    OPENCL_NAME(CL_DEVICE_NOT_AVAILABLE),
    OPENCL_NAME(CL_COMPILER_NOT_AVAILABLE),
    OPENCL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    OPENCL_NAME(CL_OUT_OF_RESOURCES),
    OPENCL_NAME(CL_OUT_OF_HOST_MEMORY),
    OPENCL_NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
    OPENCL_NAME(CL_MEM_COPY_OVERLAP),
    OPENCL_NAME(CL_BUILD_PROGRAM_FAILURE),
    OPENCL_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    OPENCL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    OPENCL_NAME(CL_INVALID_VALUE),
    OPENCL_NAME(CL_INVALID_DEVICE),
    OPENCL_NAME(CL_INVALID_CONTEXT),
    OPENCL_NAME(CL_INVALID_QUEUE_PROPERTIES),
    OPENCL_NAME(CL_INVALID_COMMAND_QUEUE),
    OPENCL_NAME(CL_INVALID_MEM_OBJECT),
    OPENCL_NAME(CL_INVALID_BINARY),
    OPENCL_NAME(CL_INVALID_BUILD_OPTIONS),
    OPENCL_NAME(CL_INVALID_PROGRAM_EXECUTABLE),
    OPENCL_NAME(CL_INVALID_KERNEL_NAME),
    OPENCL_NAME(CL_INVALID_ARG_INDEX),
    OPENCL_NAME(CL_INVALID_ARG_VALUE),
    OPENCL_NAME(CL_INVALID_ARG_SIZE),
    OPENCL_NAME(CL_INVALID_KERNEL_ARGS),
    OPENCL_NAME(CL_INVALID_WORK_GROUP_SIZE),
    OPENCL_NAME(CL_INVALID_WORK_ITEM_SIZE),
    OPENCL_NAME(CL_INVALID_EVENT),
    OPENCL_NAME(CL_INVALID_OPERATION),
    OPENCL_NAME(CL_INVALID_BUFFER_SIZE),
};
#undef OPENCL_NAME

}  // namespace

const Api* find_api() {
  static const Api* const found = load();
  return found;
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string text_of(cl_int status) {
  const char* name = "status";
  for (const Name& known : kNames) {
    if (known.status == status) name = known.text;
  }
  return std::string(name) + " (" + std::to_string(status) + ")";
}

void raise(const char* call, cl_int status) {
  throw std::runtime_error(std::string(call) + ": " + text_of(status));
}

}  // namespace ocl
