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

Result<void> settled(const std::error_code& error) {
  if (error) return Failure{error.message()};
  return {};
}

Failure last_error() {
  return {std::strerror(errno)};
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

Result<std::string> RealDisk::read(const fs::path& path) const {
  // Some systems open a folder like a file, so that only reading it fails.
  if (look(path) == Entry::kFolder) return Failure{std::strerror(EISDIR)};
  const File file(std::fopen(path.string().c_str(), "rb"));
  if (!file) return last_error();
  std::string bytes;
  std::array<char, 65536> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), file.get())) {
    bytes.append(part.data(), got);
  }
  if (std::ferror(file.get()) != 0) return last_error();
  return bytes;
}

Result<void> RealDisk::write(const fs::path& path, std::string_view bytes) {
  File file(std::fopen(path.string().c_str(), "wb"));
  if (!file) return last_error();
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                       std::fflush(file.get()) == 0;
  // Closing can fail too, for example on a network file system that writes only then.
  if (!written || std::fclose(file.release()) != 0) return last_error();
  return {};
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
  // The system releases the lock with the descriptor, also if the process is killed.
  const auto held =
      std::make_shared<Descriptor>(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int status = -1;
  do {
    status = flock(held->number(), LOCK_EX);
  } while (status == -1 && errno == EINTR);
  return status == 0 ? held : nullptr;
}

Result<void> RealDisk::rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return settled(error);
}

Result<void> RealDisk::make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directory(path, error);
  return settled(error);
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

Result<void> RealDisk::remove(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  return settled(error);
}

}  // namespace backendgen
