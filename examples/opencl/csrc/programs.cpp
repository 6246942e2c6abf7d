#include "programs.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

namespace ocl {

namespace {

namespace fs = std::filesystem;

// A kernel divides and takes roots as exactly as the CPU does, where the device can. Some
// drivers print their compiler's warnings, so it gives none.
constexpr const char* kOptions = "-cl-std=CL1.2 -w";
constexpr std::size_t kMostLines = 30;  // of what a compiler says

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char one : text) hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3;
  return hash;
}

std::string hexadecimal(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number /= 16) {
    *digit = kDigits[number % 16];
  }
  return text;
}

/// Where compiled programs are kept; nowhere if empty.
fs::path cache_folder() {
  const std::string chosen = variable("OPENCL_CACHE");
  if (chosen == "off") return {};
  if (!chosen.empty()) return chosen;
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) {
    return fs::path(caches) / "torch_opencl";
  }
  const std::string home = variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "torch_opencl";
}

/// A compiled program in a file: what it was made from, a checksum, and the device's code.
struct Cached {
  static std::string packed(const std::string& key, const std::string& code) {
    return key + '\0' + hexadecimal(hash_of(code)) + code;
  }

  /// The code in a file's contents; empty if it is of something else, or damaged.
  static std::string unpacked(const std::string& file, const std::string& key) {
    const std::size_t begin = key.size() + 1 + 16;
    if (file.size() <= begin || file.compare(0, key.size(), key) != 0) return {};
    std::string code = file.substr(begin);
    return file == packed(key, code) ? code : std::string();
  }
};

/// What a file has; empty or a part of it if the file cannot be read.
std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

/// Writes beside the file and renames, so that other processes see all of it or nothing. A folder
/// that cannot be written is no error: the next process compiles again.
void write_file(const fs::path& path, const std::string& text) {
  static std::atomic<int> turn = 0;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  fs::path beside = path;
  beside += "." + std::to_string(getpid()) + "." + std::to_string(turn++);
  std::ofstream file(beside, std::ios::binary);
  file << text;
  file.close();
  if (file) fs::rename(beside, path, ignored);
  if (!file || ignored) fs::remove(beside, ignored);
}

std::string first_lines(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < kMostLines && end != std::string::npos; ++line) {
    end = text.find('\n', end + 1);
  }
  return text.substr(0, end);
}

[[noreturn]] void does_not_compile(Device& device, cl_program program, const char* family) {
  std::size_t bytes = 0;
  api().clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  api().clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  throw std::runtime_error(std::string("kernels/") + family + ".cl does not compile for " +
                           device.name + ":\n" + first_lines(log));
}

cl_program from_code(Device& device, const std::string& code) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(code.data());
  const std::size_t size = code.size();
  cl_int status = CL_SUCCESS;
  cl_program const program = api().clCreateProgramWithBinary(device.context, 1, &device.id, &size,
                                                             &bytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  if (api().clBuildProgram(program, 1, &device.id, kOptions, nullptr, nullptr) == CL_SUCCESS) {
    return program;
  }
  api().clReleaseProgram(program);
  return nullptr;
}

cl_program from_source(Device& device, const char* family, const std::string& source) {
  const char* text = source.data();
  const std::size_t size = source.size();
  cl_int status = CL_SUCCESS;
  cl_program const program =
      api().clCreateProgramWithSource(device.context, 1, &text, &size, &status);
  check("clCreateProgramWithSource", status);
  status = api().clBuildProgram(program, 1, &device.id, kOptions, nullptr, nullptr);
  if (status == CL_BUILD_PROGRAM_FAILURE) does_not_compile(device, program, family);
  check("clBuildProgram", status);
  return program;
}

/// The code of a program for one of the devices of its context.
std::string code_of(Device& device, cl_program program) {
  cl_uint count = 0;
  const auto ask = [&](cl_program_info what, std::size_t bytes, void* answer) {
    check("clGetProgramInfo", api().clGetProgramInfo(program, what, bytes, answer, nullptr));
  };
  ask(CL_PROGRAM_NUM_DEVICES, sizeof count, &count);
  std::vector<cl_device_id> ids(count);
  std::vector<std::size_t> sizes(count);
  ask(CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), ids.data());
  ask(CL_PROGRAM_BINARY_SIZES, count * sizeof(std::size_t), sizes.data());
  std::vector<std::string> codes(count);
  std::vector<char*> places(count);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i].resize(sizes[i]);
    places[i] = codes[i].data();
  }
  ask(CL_PROGRAM_BINARIES, count * sizeof(char*), places.data());
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] == device.id) return codes[i];
  }
  return {};
}

/// A kernel's source, with the files that its lines `#include "NAME.cl"` name.
std::string with_includes(std::string_view text) {
  constexpr std::string_view kBegin = "\n#include \"";
  constexpr std::string_view kEnd = ".cl\"";
  std::string whole(text);
  for (std::size_t begin = 0; (begin = whole.find(kBegin, begin)) != std::string::npos;) {
    const std::size_t name = begin + kBegin.size();
    const std::size_t end = whole.find(kEnd, name);
    const std::string_view included = source_of(whole.substr(name, end - name));
    whole.replace(begin + 1, end + kEnd.size() - begin - 1, included);
  }
  return whole;
}

cl_program make(Device& device, const char* family, const std::string& defines) {
  const std::string source =
      defines + std::string(source_of("types")) + with_includes(source_of(family));
  const fs::path folder = cache_folder();
  if (folder.empty()) return from_source(device, family, source);
  const std::string key = "torch_opencl 1\n" + device.name + "\n" +
                          text_of(device.id, CL_DEVICE_VERSION) + "\n" +
                          text_of(device.id, CL_DRIVER_VERSION) + "\n" + kOptions + "\n" + source;
  const fs::path file = folder / (std::string(family) + "-" + hexadecimal(hash_of(key)));
  if (const std::string code = Cached::unpacked(read_file(file), key); !code.empty()) {
    if (cl_program const program = from_code(device, code)) return program;
  }
  cl_program const program = from_source(device, family, source);
  if (const std::string code = code_of(device, program); !code.empty()) {
    write_file(file, Cached::packed(key, code));
  }
  return program;
}

}  // namespace

cl_program program_of(Device& device, const char* family, const std::string& defines) {
  using Key = std::pair<cl_device_id, std::string>;
  static std::mutex mutex;
  static auto* const programs = new std::map<Key, std::shared_future<cl_program>>;
  const Key key(device.id, std::string(family) + "\n" + defines);
  std::promise<cl_program> made;
  std::shared_future<cl_program> program;
  bool mine = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [place, missing] = programs->try_emplace(key, made.get_future().share());
    program = place->second;
    mine = missing;
  }
  if (!mine) return program.get();  // another thread compiles it, or has
  try {
    made.set_value(make(device, family, defines));
  } catch (...) {
    made.set_exception(std::current_exception());
    const std::lock_guard<std::mutex> lock(mutex);
    programs->erase(key);  // the next call tries again
  }
  return program.get();
}

}  // namespace ocl
