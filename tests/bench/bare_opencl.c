// SPDX-License-Identifier: Apache-2.0
// What a driver of OpenCL does by itself: the work of opencl.py without PyTorch. Prints the median
// seconds of each kind of work, a line each.

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRuns = 11, kChain = 1000, kFew = 16, kMany = 16 << 20, kSide = 1024 };  // 64 MiB of float

static const char* const kSource =
    "kernel void add(global float* out, global const float* a, global const float* b, int n) {\n"
    "  for (int i = (int)((long)n * get_global_id(0) / get_global_size(0)),\n"
    "           end = (int)((long)n * (get_global_id(0) + 1) / get_global_size(0)); i < end; ++i)\n"
    "    out[i] = a[i] + b[i];\n"
    "}\n"
    "kernel void gap(global float* out, global const float* a, global const float* b, int n) {\n"
    "  for (int i = (int)((long)n * get_global_id(0) / get_global_size(0)),\n"
    "           end = (int)((long)n * (get_global_id(0) + 1) / get_global_size(0)); i < end; ++i)\n"
    "    out[i] = a[2 * i];\n"
    "}\n"
    "kernel void sum(global float* out, global const float* a, global const float* b, int n) {\n"
    "  int i = (int)((long)n * get_global_id(0) / get_global_size(0));\n"
    "  const int end = (int)((long)n * (get_global_id(0) + 1) / get_global_size(0));\n"
    "  float16 all = 0;\n"
    "  for (; i + 16 <= end; i += 16) all += vload16(0, a + i);\n"
    "  float8 eight = all.lo + all.hi;\n"
    "  float4 four = eight.lo + eight.hi;\n"
    "  float total = four.x + four.y + four.z + four.w;\n"
    "  for (; i < end; ++i) total += a[i];\n"
    "  out[get_global_id(0)] = total;\n"
    "}\n";

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static size_t items;  // work items for many elements

static void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, status);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_value(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return (one > other) - (one < other);
}

static cl_kernel kernel_of(const char* name, float** memory, int count) {
  cl_int status;
  cl_kernel kernel = clCreateKernel(program, name, &status);
  check(status, "clCreateKernel");
  for (cl_uint i = 0; i < 3; ++i) {
    check(clSetKernelArgSVMPointer(kernel, i, memory[i]), "clSetKernelArgSVMPointer");
  }
  check(clSetKernelArg(kernel, 3, sizeof count, &count), "clSetKernelArg");
  return kernel;
}

typedef void (*Work)(void*);

static void measure(const char* name, Work work, void* argument) {
  double times[kRuns];
  work(argument);
  clFinish(queue);
  for (int i = 0; i < kRuns; ++i) {
    const double start = now();
    work(argument);
    clFinish(queue);
    times[i] = now() - start;
  }
  qsort(times, kRuns, sizeof *times, by_value);
  printf("%s %.9f\n", name, times[kRuns / 2]);
}

static void launch(cl_kernel kernel, size_t size) {
  const size_t group = 1;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &group, 0, NULL, NULL), "launch");
}

static void chain(void* kernel) {
  for (int i = 0; i < kChain; ++i) launch(kernel, 1);
}

static void once(void* kernel) {
  launch(kernel, items);
}

static clEnqueueCommandBufferKHR_fn enqueue_graph;

static void replay(void* graph) {
  check(enqueue_graph(1, &queue, graph, 0, NULL, NULL), "clEnqueueCommandBufferKHR");
}

static void measure_graph(cl_platform_id platform, float** memory) {
#define FIND(name) \
  name##_fn name = (name##_fn)clGetExtensionFunctionAddressForPlatform(platform, #name)
  FIND(clCreateCommandBufferKHR);
  FIND(clFinalizeCommandBufferKHR);
  FIND(clCommandNDRangeKernelKHR);
  enqueue_graph = (clEnqueueCommandBufferKHR_fn)clGetExtensionFunctionAddressForPlatform(
      platform, "clEnqueueCommandBufferKHR");
  if (!clCreateCommandBufferKHR || !clCommandNDRangeKernelKHR || !enqueue_graph) return;
  cl_int status;
  cl_command_buffer_khr graph = clCreateCommandBufferKHR(1, &queue, NULL, &status);
  check(status, "clCreateCommandBufferKHR");
  const size_t one = 1;
  for (int i = 0; i < kChain; ++i) {
    check(clCommandNDRangeKernelKHR(graph, NULL, NULL, kernel_of("add", memory, kFew), 1, NULL,
                                    &one, &one, 0, NULL, NULL, NULL),
          "clCommandNDRangeKernelKHR");
  }
  check(clFinalizeCommandBufferKHR(graph), "clFinalizeCommandBufferKHR");
  measure("graph", replay, graph);
}

// Of <clblast_c.h>: rows and columns as they are, C = alpha * A * B + beta * C.
enum { kRowMajor = 101, kNotTransposed = 111 };
typedef int (*Sgemm)(int layout, int transpose_a, int transpose_b, size_t m, size_t n, size_t k,
                     float alpha, cl_mem a, size_t a_offset, size_t a_line, cl_mem b,
                     size_t b_offset, size_t b_line, float beta, cl_mem c, size_t c_offset,
                     size_t c_line, cl_command_queue*, cl_event*);

static Sgemm sgemm;

static void multiply(void* argument) {
  cl_mem* const matrix = argument;
  check(sgemm(kRowMajor, kNotTransposed, kNotTransposed, kSide, kSide, kSide, 1, matrix[0], 0,
              kSide, matrix[1], 0, kSide, 0, matrix[2], 0, kSide, &queue, NULL),
        "CLBlastSgemm");
}

static void measure_clblast(void) {
  void* const library = dlopen("libclblast.so.1", RTLD_NOW);
  if (library == NULL) return;
  sgemm = (Sgemm)dlsym(library, "CLBlastSgemm");
  float* const numbers = malloc(sizeof(float) * kSide * kSide);
  if (sgemm == NULL || numbers == NULL) return;
  for (int i = 0; i < kSide * kSide; ++i) numbers[i] = (float)(i % 100) * 0.01f;
  cl_mem matrices[3];
  for (int i = 0; i < 3; ++i) {
    cl_int status;
    matrices[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 sizeof(float) * kSide * kSide, numbers, &status);
    check(status, "clCreateBuffer");
  }
  measure("mm of 1024 by CLBlast", multiply, matrices);
}

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check(status, "clCreateContext");
  queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
  check(status, "clCreateCommandQueueWithProperties");
  program = clCreateProgramWithSource(context, 1, (const char**)&kSource, NULL, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "-cl-std=CL1.2 -w", NULL, NULL), "clBuildProgram");
  cl_uint units = 1;
  clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
  items = 2 * (size_t)units;

  float* memory[3];
  for (int i = 0; i < 3; ++i) {
    memory[i] = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                           (size_t)kMany * sizeof(float), 0);
    if (memory[i] == NULL) return 1;
    memset(memory[i], 0, (size_t)kMany * sizeof(float));
  }
  measure("chain", chain, kernel_of("add", memory, kFew));
  measure_graph(platform, memory);
  measure("add", once, kernel_of("add", memory, kMany));
  measure("strided copy", once, kernel_of("gap", memory, kMany / 2));
  measure("sum", once, kernel_of("sum", memory, kMany));
  measure_clblast();
  return 0;
}
