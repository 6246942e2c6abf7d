// SPDX-License-Identifier: Apache-2.0
#include "glue/writer.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace backendgen {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBeside = ".backendgen-new";

std::string stamp_of(std::string_view bytes) {
  return fmt::format("{:016x}", hash_of(bytes));
}

using Stamp = std::map<std::string, std::string>;  // path → hash

/// A line that is not of the stamp's form is passed over: its file then counts as edited. So does a
/// path that leads out of the folder, since surplus files are removed by it.
Stamp read_stamp(const fs::path& folder, const Disk& disk) {
  constexpr std::size_t kHash = 16;
  Stamp stamp;
  const Result<std::string> read = disk.read(folder / kStampName);
  std::string_view rest = read ? std::string_view(*read) : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.size() <= kHash + 2 || line.substr(kHash, 2) != "  ") continue;
    const fs::path path = fs::path(line.substr(kHash + 2)).lexically_normal();
    if (path.is_absolute() || *path.begin() == "..") continue;
    stamp.emplace(path.generic_string(), line.substr(0, kHash));
  }
  return stamp;
}

std::string print_stamp(const Plan& plan) {
  std::string text = "backendgen " BACKENDGEN_VERSION "\n";
  for (const PlannedFile& file : plan) {
    text += fmt::format("{}  {}\n", stamp_of(file.text), file.path);
  }
  return text;
}

/// Files are written under such names first, which tell what a killed run has left.
bool is_beside(std::string_view name) {
  return name.find(kBeside) != name.npos;
}

/// Writes files in two steps, all beside their places and then all renamed, and undoes what it did
/// unless it came to the end.
class Transaction {
 public:
  Transaction(Disk& disk, Diagnostics& problems) : disk_(disk), problems_(problems) {}

  ~Transaction() {
    if (done_) return;
    for (const auto& [path, beside] : waiting_) std::ignore = disk_.remove(beside);
    for (const fs::path& path : created_) std::ignore = disk_.remove(path);
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
      std::ignore = disk_.remove(*folder);
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  bool make_folders(const fs::path& folder) {
    if (folder.empty() || disk_.look(folder) == Entry::kFolder) return true;
    if (folder.has_relative_path() && !make_folders(folder.parent_path())) return false;
    if (const auto made = disk_.make_folder(folder); !made) {
      return fail("make the folder", folder, made.why());
    }
    folders_.push_back(folder);
    return true;
  }

  bool write(const fs::path& path, std::string_view bytes) {
    if (!make_folders(path.parent_path())) return false;
    fs::path start = path;
    start += kBeside;
    waiting_.emplace_back(path, disk_.unused(start));
    const auto written = disk_.write(waiting_.back().second, bytes);
    return written || fail("write", path, written.why());
  }

  /// Renames all, in the order they were written, so that a stamp comes last. A rename within a
  /// folder that could just be written to fails only when a folder stands in a file's place, which
  /// is looked at before the first one.
  bool commit() {
    for (const auto& [path, beside] : waiting_) {
      if (disk_.look(path) == Entry::kFolder) return fail("write", path, "a folder is there");
    }
    while (!waiting_.empty()) {
      const auto [path, beside] = waiting_.front();
      const bool is_new = disk_.look(path) == Entry::kNothing;
      if (const auto renamed = disk_.rename(beside, path); !renamed) {
        return fail("write", path, renamed.why());
      }
      if (is_new) created_.push_back(path);
      waiting_.pop_front();
    }
    done_ = true;
    return true;
  }

 private:
  bool fail(std::string_view what, const fs::path& path, const std::string& why) {
    problems_.error(fmt::format("cannot {} {}: {}", what, path.generic_string(), why));
    return false;
  }

  Disk& disk_;
  Diagnostics& problems_;
  std::vector<fs::path> folders_;
  std::deque<std::pair<fs::path, fs::path>> waiting_;  // the place, and the file beside it
  std::vector<fs::path> created_;
  bool done_ = false;
};

}  // namespace

std::optional<std::vector<Comparison>> compare(const Plan& plan, const fs::path& folder,
                                               const Disk& disk, Diagnostics& problems) {
  Stamp stamp = read_stamp(folder, disk);
  std::vector<Comparison> comparisons;
  for (const PlannedFile& file : plan) {
    const fs::path path = folder / file.path;
    if (disk.look(path) == Entry::kNothing) {
      comparisons.push_back({file.path, State::kMissing, {}});
      stamp.erase(file.path);
      continue;
    }
    Result<std::string> current = disk.read(path);
    if (!current) {
      problems.error(fmt::format("cannot read {}: {}", path.generic_string(), current.why()));
      return std::nullopt;
    }
    State state = State::kUnchanged;
    if (*current != file.text) {
      const auto known = stamp.find(file.path);
      const bool ours = known != stamp.end() && known->second == stamp_of(*current);
      state = ours ? State::kOutdated : State::kEdited;
    }
    stamp.erase(file.path);
    comparisons.push_back({file.path, state, std::move(*current)});
  }
  for (const auto& [path, hash] : stamp) {
    Result<std::string> current = disk.read(folder / path);
    if (!current) continue;
    const State state = stamp_of(*current) == hash ? State::kSurplus : State::kEdited;
    comparisons.push_back({path, state, std::move(*current)});
  }
  return comparisons;
}

std::vector<std::string> find_foreign(const std::vector<Comparison>& comparisons,
                                      const fs::path& folder, const Disk& disk) {
  const Stamp stamp = read_stamp(folder, disk);
  std::set<std::string> ours;  // in the stamp, with folders
  std::set<std::string> same;  // as planned, so perhaps of a run that is not done
  const auto add = [](fs::path path, std::set<std::string>& names) {
    for (; !path.empty(); path = path.parent_path()) names.insert(path.generic_string());
  };
  for (const auto& [path, hash] : stamp) add(path, ours);
  for (const Comparison& one : comparisons) {
    if (one.state == State::kUnchanged) add(one.path, same);
  }
  std::vector<std::string> foreign;
  const auto look_into = [&](const fs::path& below, const auto& again) -> bool {
    bool found = false;
    for (const std::string& name : disk.list(below.empty() ? folder : folder / below)) {
      const std::string path = (below / name).generic_string();
      const bool aside = name.starts_with('.') || name == "__pycache__" || is_beside(name);
      if (aside || ours.count(path) != 0) continue;
      const bool is_folder = disk.look(folder / path) == Entry::kFolder;
      const bool strange = is_folder ? again(path, again) : same.count(path) == 0;
      if (strange && below.empty()) foreign.push_back(is_folder ? path + '/' : path);
      found = found || strange;
    }
    return found;
  };
  look_into({}, look_into);
  return foreign;
}

void remove_leftovers(const Plan& plan, const fs::path& folder, Disk& disk) {
  std::set<fs::path> folders = {folder};
  for (const PlannedFile& file : plan) folders.insert((folder / file.path).parent_path());
  for (const fs::path& one : folders) {
    for (const std::string& name : disk.list(one)) {
      if (is_beside(name)) std::ignore = disk.remove(one / name);
    }
  }
}

bool write_generated(const Plan& plan, const std::vector<Comparison>& comparisons,
                     const fs::path& folder, Disk& disk, Diagnostics& problems) {
  Transaction transaction(disk, problems);
  if (!transaction.make_folders(folder)) return false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (comparisons[i].state == State::kUnchanged) continue;
    if (!transaction.write(folder / plan[i].path, plan[i].text)) return false;
  }
  const std::string stamp = print_stamp(plan);
  const auto known = disk.read(folder / kStampName);
  const bool same_stamp = known && *known == stamp;
  if (!same_stamp && !transaction.write(folder / kStampName, stamp)) return false;
  if (!transaction.commit()) return false;
  for (std::size_t i = plan.size(); i < comparisons.size(); ++i) {
    const fs::path path = folder / comparisons[i].path;
    if (const auto removed = disk.remove(path); !removed) {
      problems.error(fmt::format("cannot remove {}: {}", path.generic_string(), removed.why()));
      return false;
    }
  }
  return true;
}

bool write_new(const Plan& plan, const fs::path& folder, Disk& disk, Diagnostics& problems) {
  Transaction transaction(disk, problems);
  if (!transaction.make_folders(folder)) return false;
  for (const PlannedFile& file : plan) {
    if (!transaction.write(folder / file.path, file.text)) return false;
  }
  return transaction.commit();
}

}  // namespace backendgen
