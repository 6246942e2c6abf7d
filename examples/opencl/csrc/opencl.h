#pragma once

// The OpenCL API, found when the program runs: without a driver, the backend loads all the same.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <string>

#include <CL/cl.h>
#include <CL/cl_ext.h>

namespace ocl {

// clang-format off
#define OPENCL_FUNCTIONS(X)                                                                        \
  X(clCreateBuffer) X(clCreateCommandQueue) X(clCreateContext) X(clCreateKernel)                   \
  X(clCreateProgramWithBinary) X(clCreateProgramWithSource) X(clCreateUserEvent)                   \
  X(clBuildProgram) X(clEnqueueBarrierWithWaitList) X(clEnqueueCopyBuffer) X(clEnqueueMapBuffer)   \
  X(clEnqueueMarkerWithWaitList) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)                  \
  X(clEnqueueUnmapMemObject) X(clEnqueueWriteBuffer) X(clFinish) X(clFlush) X(clGetDeviceIDs)      \
  X(clGetDeviceInfo) X(clGetEventInfo) X(clGetEventProfilingInfo)                                  \
  X(clGetExtensionFunctionAddressForPlatform) X(clGetKernelWorkGroupInfo)                          \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetProgramBuildInfo) X(clGetProgramInfo)            \
  X(clReleaseEvent) X(clReleaseKernel) X(clReleaseMemObject) X(clReleaseProgram)                   \
  X(clRetainEvent) X(clSetEventCallback) X(clSetKernelArg) X(clSetUserEventStatus)                 \
  X(clWaitForEvents)
/// Of OpenCL 2.0; null where the loader is older.
#define OPENCL_NEWER_FUNCTIONS(X)                                                                  \
  X(clCreateCommandQueueWithProperties) X(clEnqueueSVMMemcpy) X(clSetKernelArgSVMPointer)          \
  X(clSVMAlloc) X(clSVMFree)
// clang-format on

/// The functions of the ICD loader, which passes each call to the driver of its device.
struct Api {
#define OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  OPENCL_FUNCTIONS(OPENCL_MEMBER)
  OPENCL_NEWER_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

/// Null if the machine has no ICD loader (libOpenCL.so.1).
const Api* find_api();

/// The same where a device exists, and with it a loader.
inline const Api& api() {
  static const Api& found = *find_api();
  return found;
}

/// An environment variable; empty if it is not set.
std::string variable(const char* name);

/// "CL_OUT_OF_RESOURCES (-5)".
std::string text_of(cl_int status);

[[noreturn]] void raise(const char* call, cl_int status);

/// Throws if a call failed.
inline void check(const char* call, cl_int status) {
  if (status != CL_SUCCESS) [[unlikely]]
    raise(call, status);
}

}  // namespace ocl
