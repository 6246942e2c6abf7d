#include "devices.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blas.h"

namespace ocl {

namespace {

struct Found {
  cl_platform_id platform;
  cl_device_id id;
};

std::string lower(std::string text) {
  for (char& one : text) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return text;
}

cl_device_type type_of(cl_device_id id) { return number_of<cl_device_type>(id, CL_DEVICE_TYPE); }

/// Every device of every platform: GPUs, then other accelerators, then CPUs.
std::vector<Found> list_all() {
  const Api* const cl = find_api();
  std::vector<Found> all;
  if (cl == nullptr) return all;
  cl_uint count = 0;
  const cl_int status = cl->clGetPlatformIDs(0, nullptr, &count);
  if (status == CL_PLATFORM_NOT_FOUND_KHR) return all;
  check("clGetPlatformIDs", status);
  std::vector<cl_platform_id> platforms(count);
  check("clGetPlatformIDs", cl->clGetPlatformIDs(count, platforms.data(), nullptr));
  for (cl_platform_id const platform : platforms) {
    cl_uint devices = 0;
    // A platform without a device says so with an error.
    if (cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> ids(devices);
    check("clGetDeviceIDs",
          cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr));
    for (cl_device_id const id : ids) {
      if (number_of<cl_bool>(id, CL_DEVICE_AVAILABLE) != 0) all.push_back({platform, id});
    }
  }
  const auto rank = [](const Found& one) {
    const cl_device_type type = type_of(one.id);
    return (type & CL_DEVICE_TYPE_GPU) != 0 ? 0 : (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Found& a, const Found& b) { return rank(a) < rank(b); });
  return all;
}

/// Whether a word of OPENCL_DEVICES means the device at a place.
bool means(const std::string& word, const Found& one, std::size_t place) {
  const cl_device_type type = type_of(one.id);
  if (word == "gpu") return (type & CL_DEVICE_TYPE_GPU) != 0;
  if (word == "cpu") return (type & CL_DEVICE_TYPE_CPU) != 0;
  if (word == std::to_string(place)) return true;
  if (std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return false;
  }
  return lower(text_of(one.id, CL_DEVICE_NAME)).find(word) != std::string::npos;
}

/// The devices that OPENCL_DEVICES chooses.
std::vector<Found> list() {
  const std::vector<Found> all = list_all();
  const std::string wish = lower(variable("OPENCL_DEVICES"));
  if (wish.empty()) return all;
  std::vector<bool> taken(all.size());
  std::vector<Found> chosen;
  for (std::size_t begin = 0; begin <= wish.size();) {
    const std::size_t end = std::min(wish.find(',', begin), wish.size());
    std::string word = wish.substr(begin, end - begin);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    begin = end + 1;
    bool matches = false;
    for (std::size_t place = 0; place < all.size() && !word.empty(); ++place) {
      if (!means(word, all[place], place)) continue;
      matches = true;
      if (!taken[place]) chosen.push_back(all[place]);
      taken[place] = true;
    }
    if (matches || all.empty()) continue;
    std::string text = "OPENCL_DEVICES: no device is `" + word + "`; there are";
    for (std::size_t place = 0; place < all.size(); ++place) {
      text += (place == 0 ? " " : ", ") + std::to_string(place) + " " +
              text_of(all[place].id, CL_DEVICE_NAME);
    }
    throw std::runtime_error(text);
  }
  return chosen;
}

cl_context make_context(cl_platform_id platform, const std::vector<Found>& all) {
  std::vector<cl_device_id> ids;
  for (const Found& one : all) {
    if (one.platform == platform) ids.push_back(one.id);
  }
  const std::array<cl_context_properties, 3> properties = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int status = CL_SUCCESS;
  cl_context const context = api().clCreateContext(
      properties.data(), static_cast<cl_uint>(ids.size()), ids.data(), nullptr, nullptr, &status);
  check("clCreateContext", status);
  return context;
}

/// Whether a device can have memory at addresses of the host, and whether the host may use it.
void choose_memory(Device& device) {
  const Api& cl = api();
  const auto kinds = number_of<cl_device_svm_capabilities>(device.id, CL_DEVICE_SVM_CAPABILITIES);
  const bool possible = kinds != 0 && cl.clSVMAlloc != nullptr && cl.clEnqueueSVMMemcpy != nullptr;
  const std::string wish = variable("OPENCL_MEMORY");
  if (!wish.empty() && wish != "svm" && wish != "buffer") {
    throw std::runtime_error("OPENCL_MEMORY=" + wish + ": it is `svm` or `buffer`");
  }
  if (wish == "svm" && !possible) {
    throw std::runtime_error("OPENCL_MEMORY=svm: " + device.name + " has no shared virtual memory");
  }
  device.svm = possible && wish != "buffer";
  device.host_accessible = device.svm && (kinds & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0 &&
                           number_of<cl_bool>(device.id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
}

std::vector<std::unique_ptr<Device>> start() {
  const std::vector<Found> all = list();
  std::map<cl_platform_id, cl_context> contexts;
  std::vector<std::unique_ptr<Device>> devices;
  for (const Found& one : all) {
    cl_context& context = contexts[one.platform];
    if (context == nullptr) context = make_context(one.platform, all);
    Device& device = *devices.emplace_back(std::make_unique<Device>());
    device.id = one.id;
    device.platform = one.platform;
    device.context = context;
    device.name = text_of(one.id, CL_DEVICE_NAME);
    device.priorities =
        text_of(one.id, CL_DEVICE_EXTENSIONS).find("cl_khr_priority_hints") != std::string::npos;
    device.memory = number_of<cl_ulong>(one.id, CL_DEVICE_GLOBAL_MEM_SIZE);
    device.is_cpu = (type_of(one.id) & CL_DEVICE_TYPE_CPU) != 0;
    device.units = std::max<cl_uint>(1, number_of<cl_uint>(one.id, CL_DEVICE_MAX_COMPUTE_UNITS));
    device.local_memory = number_of<cl_ulong>(one.id, CL_DEVICE_LOCAL_MEM_SIZE);
    const auto vector = number_of<cl_uint>(one.id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    device.vector = vector >= 16 ? 16 : vector >= 8 ? 8 : 4;
    choose_memory(device);
    device.blas = uses_blas(device);
    const int index = static_cast<int>(devices.size()) - 1;
    device.default_queue = make_queue(device, index, 0);
    device.pinning_queue = make_queue(device, index, 0);
  }
  return devices;
}

constexpr int kChildren = 3;
constexpr int kMillisecondsToAnswer = 10'000;  // drivers load slowly on a busy machine

/// What the child of `count_devices` tells its parent.
struct Answer {
  int count = -1;
  std::array<char, 500> problem{};
};

Answer count_here() noexcept {
  Answer answer;
  try {
    answer.count = static_cast<int>(list().size());
  } catch (const std::exception& error) {
    std::strncpy(answer.problem.data(), error.what(), answer.problem.size() - 1);
  }
  return answer;
}

/// What became of a child that was asked for the number of devices.
struct Child {
  enum class End { kNotStarted, kAnswered, kCrashed, kSilent };
  End end = End::kNotStarted;
  Answer answer;
  std::string how;  ///< it crashed
};

/// Reads an answer, and tells whether it came.
Child::End read_answer(int from, Answer& answer) {
  std::size_t have = 0;
  while (have < sizeof answer) {
    pollfd wait{from, POLLIN, 0};
    const int ready = poll(&wait, 1, kMillisecondsToAnswer);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Child::End::kSilent;
    if (ready < 0) return Child::End::kCrashed;
    const ssize_t more = read(from, reinterpret_cast<char*>(&answer) + have, sizeof answer - have);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return Child::End::kCrashed;
    have += static_cast<std::size_t>(more);
  }
  return Child::End::kAnswered;
}

/// A driver starts threads, which a fork would not copy, and some drivers crash when they are asked
/// for the first time. So a child asks, and this process starts drivers with the first tensor. If
/// this process has threads, the child may wait forever for a lock that one of them had: then it
/// is ended, and another one may do better.
Child ask_a_child() {
  Child child;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return child;
  const pid_t id = fork();
  if (id == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      std::signal(signal, SIG_DFL);
    }
    const Answer answer = count_here();
    _exit(write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  close(ends[1]);
  if (id > 0) {
    child.end = read_answer(ends[0], child.answer);
    if (child.end == Child::End::kSilent) kill(id, SIGKILL);
    int status = 0;
    while (waitpid(id, &status, 0) < 0 && errno == EINTR) continue;
    child.how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no answer";
  }
  close(ends[0]);
  return child;
}

}  // namespace

std::string text_of(cl_device_id id, cl_device_info what) {
  std::size_t bytes = 0;
  if (api().clGetDeviceInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  check("clGetDeviceInfo", api().clGetDeviceInfo(id, what, bytes, text.data(), nullptr));
  text.resize(std::strlen(text.c_str()));
  return text;
}

int count_devices() {
  if (find_api() == nullptr) return 0;
  for (int attempt = 0; attempt < kChildren; ++attempt) {
    const Child child = ask_a_child();
    if (child.end == Child::End::kNotStarted) return count_here().count;
    if (child.end == Child::End::kSilent) continue;
    if (child.end == Child::End::kCrashed) {
      throw std::runtime_error("an OpenCL driver crashes when it is asked for its devices (" +
                               child.how +
                               "); `clinfo` shows which, and the variable OCL_ICD_VENDORS can "
                               "leave it out");
    }
    if (child.answer.count < 0) throw std::runtime_error(child.answer.problem.data());
    return child.answer.count;
  }
  throw std::runtime_error(
      "the OpenCL drivers do not answer when they are asked for their devices; `clinfo` shows "
      "which one hangs, and the variable OCL_ICD_VENDORS can leave it out");
}

Device& device_at(int index) {
  static auto* const devices = new std::vector<std::unique_ptr<Device>>(start());
  return *devices->at(static_cast<std::size_t>(index));
}

std::unique_ptr<Queue> make_queue(Device& device, int index, int priority) {
  const Api& cl = api();
  cl_int status = CL_SUCCESS;
  cl_command_queue queue = nullptr;
  if (cl.clCreateCommandQueueWithProperties != nullptr) {
    std::vector<cl_queue_properties> properties = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE};
    if (device.priorities && priority != 0) {
      properties.push_back(CL_QUEUE_PRIORITY_KHR);
      properties.push_back(priority < 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR);
    }
    properties.push_back(0);
    queue = cl.clCreateCommandQueueWithProperties(device.context, device.id, properties.data(),
                                                  &status);
  } else {
    queue = cl.clCreateCommandQueue(device.context, device.id, CL_QUEUE_PROFILING_ENABLE, &status);
  }
  check("clCreateCommandQueue", status);
  return std::make_unique<Queue>(queue, index);
}

}  // namespace ocl
