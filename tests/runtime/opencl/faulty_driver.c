// SPDX-License-Identifier: Apache-2.0
// An OpenCL driver that goes wrong when it is told to: PoCL, whose functions first look at the
// environment variable FAULTY_OPENCL. An ICD loader calls a driver through a table, which every
// object of the driver points to. This library loads PoCL and puts its own functions there.
#define CL_TARGET_OPENCL_VERSION 300
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CL/cl.h>
#include <CL/cl_icd.h>

static cl_icd_dispatch pocl;  // the functions of PoCL

static int fault_is(const char* fault) {
  const char* const wanted = getenv("FAULTY_OPENCL");
  return wanted != NULL && strcmp(wanted, fault) == 0;
}

// A device that is lost fails in every command, and in every wait.
#define LOST(name, parameters, arguments)                                   \
  static CL_API_ENTRY cl_int CL_API_CALL lost_##name parameters {           \
    return fault_is("lost") ? CL_DEVICE_NOT_AVAILABLE : pocl.name arguments; \
  }
LOST(clFinish, (cl_command_queue queue), (queue))
LOST(clFlush, (cl_command_queue queue), (queue))
LOST(clWaitForEvents, (cl_uint count, const cl_event* events), (count, events))
LOST(clEnqueueMarkerWithWaitList,
     (cl_command_queue queue, cl_uint count, const cl_event* list, cl_event* event),
     (queue, count, list, event))
LOST(clEnqueueBarrierWithWaitList,
     (cl_command_queue queue, cl_uint count, const cl_event* list, cl_event* event),
     (queue, count, list, event))
LOST(clEnqueueSVMMemcpy,
     (cl_command_queue queue, cl_bool blocking, void* dst, const void* src, size_t bytes,
      cl_uint count, const cl_event* list, cl_event* event),
     (queue, blocking, dst, src, bytes, count, list, event))
LOST(clEnqueueReadBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
      void* to, cl_uint count, const cl_event* list, cl_event* event),
     (queue, buffer, blocking, offset, bytes, to, count, list, event))
LOST(clEnqueueWriteBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
      const void* from, cl_uint count, const cl_event* list, cl_event* event),
     (queue, buffer, blocking, offset, bytes, from, count, list, event))
LOST(clEnqueueCopyBuffer,
     (cl_command_queue queue, cl_mem src, cl_mem dst, size_t from, size_t to, size_t bytes,
      cl_uint count, const cl_event* list, cl_event* event),
     (queue, src, dst, from, to, bytes, count, list, event))

/// A kernel that is queued, and fails when the device comes to it.
static cl_int fail_later(cl_command_queue queue, cl_event* event) {
  cl_context context = NULL;
  cl_int status =
      pocl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  *event = pocl.clCreateUserEvent(context, &status);
  return pocl.clSetUserEventStatus(*event, CL_OUT_OF_RESOURCES);
}

static CL_API_ENTRY cl_int CL_API_CALL run_kernel(cl_command_queue queue, cl_kernel kernel,
                                                  cl_uint rank, const size_t* offset,
                                                  const size_t* global, const size_t* local,
                                                  cl_uint count, const cl_event* list,
                                                  cl_event* event) {
  if (fault_is("lost")) return CL_DEVICE_NOT_AVAILABLE;
  if (fault_is("later")) return fail_later(queue, event);
  return pocl.clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, count, list,
                                     event);
}

static CL_API_ENTRY cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags,
                                                     size_t bytes, void* host, cl_int* status) {
  if (!fault_is("lost") && !fault_is("memory")) {
    return pocl.clCreateBuffer(context, flags, bytes, host, status);
  }
  *status = fault_is("lost") ? CL_DEVICE_NOT_AVAILABLE : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return NULL;
}

static CL_API_ENTRY void* CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags,
                                               size_t bytes, cl_uint alignment) {
  if (fault_is("lost") || fault_is("memory")) return NULL;
  return pocl.clSVMAlloc(context, flags, bytes, alignment);
}

static CL_API_ENTRY cl_int CL_API_CALL build(cl_program program, cl_uint count,
                                             const cl_device_id* devices, const char* options,
                                             void(CL_CALLBACK* done)(cl_program, void*),
                                             void* data) {
  char wrong[1000];
  if (fault_is("compiler")) {
    snprintf(wrong, sizeof wrong, "%s -Dglobal=worldwide", options);
    options = wrong;
  }
  return pocl.clBuildProgram(program, count, devices, options, done, data);
}

// What releases fails after it has released.
static CL_API_ENTRY cl_int CL_API_CALL release_buffer(cl_mem buffer) {
  const cl_int status = pocl.clReleaseMemObject(buffer);
  return fault_is("release") ? CL_OUT_OF_RESOURCES : status;
}

static CL_API_ENTRY cl_int CL_API_CALL release_event(cl_event event) {
  const cl_int status = pocl.clReleaseEvent(event);
  return fault_is("release") ? CL_OUT_OF_RESOURCES : status;
}

static void change(cl_icd_dispatch* table) {
  pocl = *table;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (uintptr_t)table / page * page;
  mprotect((void*)begin, (uintptr_t)(table + 1) - begin, PROT_READ | PROT_WRITE);
  table->clFinish = lost_clFinish;
  table->clFlush = lost_clFlush;
  table->clWaitForEvents = lost_clWaitForEvents;
  table->clEnqueueMarkerWithWaitList = lost_clEnqueueMarkerWithWaitList;
  table->clEnqueueBarrierWithWaitList = lost_clEnqueueBarrierWithWaitList;
  table->clEnqueueSVMMemcpy = lost_clEnqueueSVMMemcpy;
  table->clEnqueueReadBuffer = lost_clEnqueueReadBuffer;
  table->clEnqueueWriteBuffer = lost_clEnqueueWriteBuffer;
  table->clEnqueueCopyBuffer = lost_clEnqueueCopyBuffer;
  table->clEnqueueNDRangeKernel = run_kernel;
  table->clCreateBuffer = create_buffer;
  table->clSVMAlloc = allocate;
  table->clBuildProgram = build;
  table->clReleaseMemObject = release_buffer;
  table->clReleaseEvent = release_event;
}

typedef void*(CL_API_CALL* Find)(const char*);

static Find find_in_pocl(void) {
  void* const library = dlopen("libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
  return library == NULL ? NULL : (Find)dlsym(library, "clGetExtensionFunctionAddress");
}

CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint count, cl_platform_id* platforms,
                                                       cl_uint* found) {
  const Find find = find_in_pocl();
  if (find == NULL) return CL_PLATFORM_NOT_FOUND_KHR;
  const cl_int status = ((clIcdGetPlatformIDsKHR_fn)find("clIcdGetPlatformIDsKHR"))(
      count, platforms, found);
  if (status == CL_SUCCESS && platforms != NULL && pocl.clFinish == NULL) {
    change(*(cl_icd_dispatch**)platforms[0]);
  }
  return status;
}

CL_API_ENTRY void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void*)clIcdGetPlatformIDsKHR;
  const Find find = find_in_pocl();
  return find == NULL ? NULL : find(name);
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info what,
                                                  size_t bytes, void* answer, size_t* needed) {
  return pocl.clGetPlatformInfo(platform, what, bytes, answer, needed);
}
