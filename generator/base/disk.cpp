// SPDX-License-Identifier: Apache-2.0
#include "base/disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace backendgen {

namespace fs = std::filesystem;

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ != -1) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

bool settle(const std::error_code& error, std::string& why) {
  if (error) why = error.message();
  return !error;
}

}  // namespace

Entry RealDisk::look(const fs::path& path) const {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::none:
    case fs::file_type::not_found:
      return Entry::kNothing;
    case fs::file_type::regular:
      return Entry::kFile;
    case fs::file_type::directory:
      return Entry::kFolder;
    default:
      return Entry::kOther;
  }
}

std::optional<std::string> RealDisk::read(const fs::path& path, std::string& why) const {
  if (look(path) == Entry::kFolder) {
    why = std::strerror(EISDIR);
    return std::nullopt;
  }
  const File file(std::fopen(path.string().c_str(), "rb"));
  if (!file) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  std::string bytes;
  std::array<char, 65536> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), file.get())) {
    bytes.append(part.data(), got);
  }
  if (std::ferror(file.get()) != 0) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  return bytes;
}

bool RealDisk::write(const fs::path& path, std::string_view bytes, std::string& why) {
  File file(std::fopen(path.string().c_str(), "wb"));
  if (!file) {
    why = std::strerror(errno);
    return false;
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                       std::fflush(file.get()) == 0;
  if (!written || std::fclose(file.release()) != 0) {
    why = std::strerror(errno);
    return false;
  }
  return true;
}

fs::path RealDisk::unused(const fs::path& start) {
  std::random_device random;
  fs::path path;
  do {
    path = start;
    path += fmt::format("-{:08x}{:08x}", random(), random());
  } while (look(path) != Entry::kNothing);
  return path;
}

std::shared_ptr<void> RealDisk::lock(const fs::path& folder) {
  // The lock goes with the descriptor, also where the process is killed.
  const auto held =
      std::make_shared<Descriptor>(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int status = -1;
  do {
    status = flock(held->number(), LOCK_EX);
  } while (status == -1 && errno == EINTR);
  return status == 0 ? held : nullptr;
}

bool RealDisk::rename(const fs::path& from, const fs::path& to, std::string& why) {
  std::error_code error;
  fs::rename(from, to, error);
  return settle(error, why);
}

bool RealDisk::make_folder(const fs::path& path, std::string& why) {
  std::error_code error;
  fs::create_directory(path, error);
  return settle(error, why);
}

std::vector<std::string> RealDisk::list(const fs::path& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool RealDisk::remove(const fs::path& path, std::string& why) {
  std::error_code error;
  fs::remove(path, error);
  return settle(error, why);
}

}  // namespace backendgen
