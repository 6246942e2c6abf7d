#include "launch.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <backendkit/handles.h>
#include <backendkit/stream.h>

#include "graphs.h"
#include "programs.h"
#include "runtime.h"

namespace ocl {

namespace {

// Enough to keep a GPU busy while it waits for memory.
constexpr std::size_t kItemsPerUnit = 2048;
constexpr std::size_t kGroup = 256;
// A CPU's work items take long rows of neighbours; two for each core even out what disturbs one.
constexpr std::size_t kItemsPerCore = 2;
constexpr std::size_t kFewest = 4096;  // elements for a work item of a CPU

struct Key {
  int device;
  Variant variant;

  bool operator==(const Key&) const = default;
};

struct Hash {
  std::size_t operator()(const Key& key) const {
    constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;
    std::size_t hash = key.variant.macros * kOdd + static_cast<std::size_t>(key.device);
    for (const char* const text :
         {key.variant.family, key.variant.function, key.variant.expression}) {
      hash = (hash ^ (hash >> 32)) * kOdd + reinterpret_cast<std::uintptr_t>(text);
    }
    return hash ^ (hash >> 32);
  }
};

// OpenCL's kernels keep their arguments, so each thread has its own. They live as long as it.
std::unordered_map<Key, KnownKernel, Hash>& kernels() {
  thread_local std::unordered_map<Key, KnownKernel, Hash> mine;
  return mine;
}

}  // namespace

KnownKernel* Launch::keep(int device, const Variant& variant, OwnKernel kernel) {
  return &kernels().emplace(Key{device, variant}, KnownKernel{std::move(kernel), {}}).first->second;
}

KnownKernel* Launch::known(int device, const Variant& variant) {
  auto& all = kernels();
  const auto found = all.find({device, variant});
  return found == all.end() ? nullptr : &found->second;
}

Launch::Launch(const char* op, int device)
    : op_(op),
      device_(device_at(device)),
      queue_(queue_of(backendkit::current_stream<Runtime>(static_cast<c10::DeviceIndex>(device)),
                      device)) {}

OwnKernel Launch::made(int device, const Variant& variant, const std::string& defines) {
  Device& where = device_at(device);
  const std::string all = (where.is_cpu ? "#define ON_CPU\n" : "") + defines;
  cl_int status = CL_SUCCESS;
  OwnKernel kernel(
      api().clCreateKernel(program_of(where, variant.family, all), variant.function, &status));
  check("clCreateKernel", status);
  return kernel;
}

Launch& Launch::bytes(std::size_t size, const void* value) {
  const cl_uint place = next_++;
  KnownKernel::Argument now;
  if (known_ == nullptr || size > sizeof now.bits) {
    check(op_, api().clSetKernelArg(kernel_, place, size, value));
    return *this;
  }
  now.size = size;
  std::memcpy(&now.bits, value, size);
  if (known_->arguments.size() <= place) known_->arguments.resize(place + 1);
  KnownKernel::Argument& last = known_->arguments[place];
  if (last == now) return *this;
  last = {};
  check(op_, api().clSetKernelArg(kernel_, place, size, value));
  last = now;
  return *this;
}

/// Always set: another buffer may have the handle of one that is gone.
Launch& Launch::memory(cl_mem buffer) {
  check(op_, api().clSetKernelArg(kernel_, next_++, sizeof buffer, &buffer));
  return *this;
}

Launch& Launch::address(const void* address, std::size_t itemsize) {
  if (device_.svm) {
    check(op_, api().clSetKernelArgSVMPointer(kernel_, next_++, address));
    return value(cl_long{0});
  }
  if (address == nullptr) return memory(nullptr).value(cl_long{0});
  const backendkit::Location place = backendkit::locate(address);
  memory(static_cast<cl_mem>(place.handle));
  return value(static_cast<cl_long>(place.offset / itemsize));
}

Launch& Launch::number(const at::Scalar& number, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Long:
      return value(number.to<std::int64_t>());
    case c10::ScalarType::Int:
      return value(number.to<std::int32_t>());
    case c10::ScalarType::Bool:
      return value(static_cast<std::int32_t>(number.to<bool>()));
    default:
      return value(number.to<float>());
  }
}

Launch& Launch::faults() {
  faults_ = queue_.faults(recorded());
  memory(faults_->memory());
  return value(reinterpret_cast<cl_ulong>(op_));
}

void Launch::run_for(std::size_t elements) {
  std::size_t groups = 0;
  if (device_.is_cpu) {
    const std::size_t useful = (elements + kFewest - 1) / kFewest;
    groups = std::min(useful, kItemsPerCore * device_.units);
    run({groups, 1, 1}, {1, 1, 1});
  } else {
    const std::size_t useful = (elements + kGroup - 1) / kGroup;
    groups = std::min(useful, kItemsPerUnit / kGroup * device_.units);
    run({groups, 1, 1}, {kGroup, 1, 1});
  }
}

void Launch::run_jobs(std::int64_t jobs, std::int64_t elements, int team) {
  const auto all = static_cast<std::size_t>(jobs);
  if (device_.is_cpu) {
    const std::size_t useful = (all * static_cast<std::size_t>(elements) + kFewest - 1) / kFewest;
    const std::size_t most = std::min(all, kItemsPerCore * device_.units);
    run({std::clamp<std::size_t>(useful, 1, most), 1, 1}, {1, 1, 1});
  } else {
    const std::size_t useful = (all * static_cast<std::size_t>(team) + kGroup - 1) / kGroup;
    const std::size_t most = kItemsPerUnit / kGroup * device_.units;
    run({std::min(useful, most), 1, 1}, {kGroup, 1, 1});
  }
}

void Launch::run(const std::array<std::size_t, 3>& groups,
                 const std::array<std::size_t, 3>& group) {
  const std::array<std::size_t, 3> items = {groups[0] * group[0], groups[1] * group[1],
                                            groups[2] * group[2]};
  if (recorded()) {
    queue_.add_to_graph(op_, std::move(own_), [&](cl_command_buffer_khr commands) {
      return command_buffers_of(device_).add_kernel(commands, nullptr, nullptr, kernel_, 3, nullptr,
                                                    items.data(), group.data(), 0, nullptr, nullptr,
                                                    nullptr);
    });
    return;
  }
  const auto enqueue = [&](cl_command_queue queue, cl_event* event) {
    return api().clEnqueueNDRangeKernel(queue, kernel_, 3, nullptr, items.data(), group.data(), 0,
                                        nullptr, event);
  };
  queue_.add(op_, enqueue, faults_);
}

}  // namespace ocl
