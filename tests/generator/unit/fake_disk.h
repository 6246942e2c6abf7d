// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/disk.h"

namespace backendgen {

/// A file system in memory, which can be told to fail.
class FakeDisk : public Disk {
 public:
  std::map<std::string, std::string> files;
  std::set<std::string> folders = {"/"};
  int writes_before_full = 1000;  // then every write fails
  int renames_before_failure = 1000;
  std::set<std::string> read_only;
  int names = 0;  // that were given out
  int locks = 0;  // that were taken

  Entry look(const std::filesystem::path& path) const override {
    if (files.count(path.string()) != 0) return Entry::kFile;
    return folders.count(path.string()) != 0 ? Entry::kFolder : Entry::kNothing;
  }

  Result<std::string> read(const std::filesystem::path& path) const override {
    const auto found = files.find(path.string());
    if (found != files.end()) return found->second;
    return Failure{"No such file or directory"};
  }

  Result<void> write(const std::filesystem::path& path, std::string_view bytes) override {
    if (folders.count(path.parent_path().string()) == 0)
      return Failure{"No such file or directory"};
    if (writes_before_full-- <= 0) {
      files[path.string()] = std::string(bytes.substr(0, bytes.size() / 2));
      return Failure{"No space left on device"};
    }
    files[path.string()] = std::string(bytes);
    return {};
  }

  std::filesystem::path unused(const std::filesystem::path& start) override {
    std::filesystem::path path = start;
    return path += "-" + std::to_string(++names);
  }

  std::shared_ptr<void> lock(const std::filesystem::path& folder) override {
    if (folders.count(folder.string()) == 0) return nullptr;
    return std::make_shared<int>(++locks);
  }

  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (renames_before_failure-- <= 0) return Failure{"Input/output error"};
    files[to.string()] = files.at(from.string());
    files.erase(from.string());
    return {};
  }

  Result<void> make_folder(const std::filesystem::path& path) override {
    if (read_only.count(path.parent_path().string()) != 0) return Failure{"Permission denied"};
    folders.insert(path.string());
    return {};
  }

  std::vector<std::string> list(const std::filesystem::path& folder) const override {
    std::vector<std::string> names;
    for (const auto& [path, text] : files) {
      const std::filesystem::path one = path;
      if (one.parent_path() == folder) names.push_back(one.filename().string());
    }
    for (const std::string& path : folders) {
      const std::filesystem::path one = path;
      if (one.has_filename() && one.parent_path() == folder) {
        names.push_back(one.filename().string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<void> remove(const std::filesystem::path& path) override {
    files.erase(path.string());
    folders.erase(path.string());
    return {};
  }
};

}  // namespace backendgen
