// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace backendgen {

enum class Entry { kNothing, kFile, kFolder, kOther };

/// The file system, as a few calls, so that tests can put a fake in its place. No call throws; a
/// call that fails says why, such as "Permission denied".
class Disk {
 public:
  virtual ~Disk() = default;

  virtual Entry look(const std::filesystem::path& path) const = 0;

  /// The bytes of a file.
  virtual Result<std::string> read(const std::filesystem::path& path) const = 0;

  /// Writes a file whole; its folder must exist. Not in one step: see `rename`.
  virtual Result<void> write(const std::filesystem::path& path, std::string_view bytes) = 0;

  /// A path that starts with `start`, which nothing has and no other process is given.
  virtual std::filesystem::path unused(const std::filesystem::path& start) = 0;

  /// Waits until no other process has locked the folder, and locks it until the result is
  /// destroyed. Null when there is no such folder, or its file system has no locks.
  virtual std::shared_ptr<void> lock(const std::filesystem::path& folder) = 0;

  /// Gives a file another name, replacing what had it, in one step.
  virtual Result<void> rename(const std::filesystem::path& from,
                              const std::filesystem::path& to) = 0;

  virtual Result<void> make_folder(const std::filesystem::path& path) = 0;

  /// The names in a folder, sorted; none when there is no such folder.
  virtual std::vector<std::string> list(const std::filesystem::path& folder) const = 0;

  /// Removes a file or an empty folder. It worked when nothing is there afterwards.
  virtual Result<void> remove(const std::filesystem::path& path) = 0;
};

class RealDisk : public Disk {
 public:
  Entry look(const std::filesystem::path& path) const override;
  Result<std::string> read(const std::filesystem::path& path) const override;
  Result<void> write(const std::filesystem::path& path, std::string_view bytes) override;
  std::filesystem::path unused(const std::filesystem::path& start) override;
  std::shared_ptr<void> lock(const std::filesystem::path& folder) override;
  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Result<void> make_folder(const std::filesystem::path& path) override;
  std::vector<std::string> list(const std::filesystem::path& folder) const override;
  Result<void> remove(const std::filesystem::path& path) override;
};

}  // namespace backendgen
