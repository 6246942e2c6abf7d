// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

enum class Entry { kNothing, kFile, kFolder, kOther };

/// The file system, as a few calls, so that tests can put a fake in its place. No call throws; a
/// call that fails gives a reason such as "Permission denied" in `why`.
class Disk {
 public:
  virtual ~Disk() = default;

  virtual Entry look(const std::filesystem::path& path) const = 0;

  /// The bytes of a file; empty when it can't be read.
  virtual std::optional<std::string> read(const std::filesystem::path& path,
                                          std::string& why) const = 0;

  /// Writes a file whole; its folder must exist. Not in one step: see `rename`.
  virtual bool write(const std::filesystem::path& path, std::string_view bytes,
                     std::string& why) = 0;

  /// A path that starts with `start`, which nothing has and no other process is given.
  virtual std::filesystem::path unused(const std::filesystem::path& start) = 0;

  /// Waits until no other process has locked the folder, and locks it until the result is
  /// destroyed. Null when there is no such folder, or its file system has no locks.
  virtual std::shared_ptr<void> lock(const std::filesystem::path& folder) = 0;

  /// Gives a file another name, replacing what had it, in one step.
  virtual bool rename(const std::filesystem::path& from, const std::filesystem::path& to,
                      std::string& why) = 0;

  virtual bool make_folder(const std::filesystem::path& path, std::string& why) = 0;

  /// The names in a folder, sorted; none when there is no such folder.
  virtual std::vector<std::string> list(const std::filesystem::path& folder) const = 0;

  /// Removes a file or an empty folder. True when nothing is there afterwards.
  virtual bool remove(const std::filesystem::path& path, std::string& why) = 0;
};

class RealDisk : public Disk {
 public:
  Entry look(const std::filesystem::path& path) const override;
  std::optional<std::string> read(const std::filesystem::path& path,
                                  std::string& why) const override;
  bool write(const std::filesystem::path& path, std::string_view bytes, std::string& why) override;
  std::filesystem::path unused(const std::filesystem::path& start) override;
  std::shared_ptr<void> lock(const std::filesystem::path& folder) override;
  bool rename(const std::filesystem::path& from, const std::filesystem::path& to,
              std::string& why) override;
  bool make_folder(const std::filesystem::path& path, std::string& why) override;
  std::vector<std::string> list(const std::filesystem::path& folder) const override;
  bool remove(const std::filesystem::path& path, std::string& why) override;
};

}  // namespace backendgen
