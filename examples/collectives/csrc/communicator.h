// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace foo::simulator {

inline constexpr const char* kFolder = "/dev/shm";  // files here are in memory only
inline constexpr int kMostRanks = 64;
inline constexpr std::chrono::minutes kPatience{1};
inline constexpr std::size_t kChunk = std::size_t{256} << 10;   // bytes that a rank shows at a time
inline constexpr std::size_t kMessage = std::size_t{64} << 10;  // bytes of a message on their way

/// What the processes share; all zeros at first. After it come a chunk for each rank, a chunk for
/// results, and a place for a part of a message from each rank to each other one.
struct Shared {
  struct Rank {
    std::atomic<int> process;
    std::atomic<std::uint64_t> steps;  // how often it came to where ranks wait for each other
  };
  std::atomic<int> given_up;  // a rank and 1
  Rank ranks[kMostRanks];
  std::atomic<std::uint32_t> messages[kMostRanks][kMostRanks];  // bytes, from and to
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// What ends work of a communicator that was aborted.
struct Aborted {};

/// The same for processes that can share memory, and see whether another one lives.
inline std::string machine() {
  std::string name;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), name);
  struct stat memory {};
  struct stat processes {};
  stat(kFolder, &memory);
  stat("/proc/self/ns/pid", &processes);
  return name + "-" + std::to_string(memory.st_dev) + "-" + std::to_string(processes.st_ino);
}

inline std::string system_error(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

/// This process as a rank of a group, whose ranks share memory. Rank 0 makes the memory; its name
/// is gone as soon as all have it.
class Communicator {
 public:
  using Clock = std::chrono::steady_clock;

  Communicator(const std::string& name, int rank, int size, std::chrono::milliseconds timeout)
      : rank_(rank), size_(size), bytes_(bytes_for(size)) {
    if (size > kMostRanks) {
      throw std::runtime_error(
          "simulated devices have collectives of at most 64 ranks: set the variable "
          "FOO_SIMULATOR_COLLECTIVES=0");
    }
    // All ranks have the name now, so the others are not far.
    const Clock::time_point end = Clock::now() + std::min<Clock::duration>(timeout, kPatience);
    try {
      map(name, end);
      own().process = static_cast<int>(getpid());
      for (int other = 0; other < size; ++other) {
        while (shared_->ranks[other].process == 0) pause_until(end, "another rank did not come");
      }
    } catch (...) {
      unmap();
      if (rank == 0) unlink(name.c_str());
      throw;
    }
    if (rank == 0) unlink(name.c_str());  // nothing is left, however the processes end
  }

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { unmap(); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  char* slot(int rank) { return data_ + static_cast<std::size_t>(rank) * kChunk; }
  char* result() { return slot(size_); }

  char* message(int from, int to) {
    return slot(size_ + 1) + static_cast<std::size_t>(from * size_ + to) * kMessage;
  }

  std::atomic<std::uint32_t>& message_bytes(int from, int to) {
    return shared_->messages[from][to];
  }

  /// Waits until all ranks have come here.
  void meet() {
    const std::uint64_t step = ++own().steps;
    for (int other = 0; other < size_; ++other) {
      Wait wait(*this, other);
      while (shared_->ranks[other].steps < step) wait.once();
    }
  }

  /// A wait for another rank, which may have ended.
  class Wait {
   public:
    Wait(Communicator& communicator, int other) : communicator_(communicator), other_(other) {}

    void once() {
      communicator_.check();
      if (++times_ < 200) {
        std::this_thread::yield();
        return;
      }
      if (times_ % 100 == 0) communicator_.check_alive(other_);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }

   private:
    Communicator& communicator_;
    int other_;
    int times_ = 0;
  };

  void abort() {
    aborted_ = true;
    int none = 0;
    shared_->given_up.compare_exchange_strong(none, rank_ + 1);
  }

  void check() const {
    if (aborted_) throw Aborted{};
  }

  /// Says why the work cannot go on.
  void fail(const std::string& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_.empty()) error_ = why;
  }

  std::string error() {
    const int other = shared_->given_up;
    if (other != 0) return "rank " + std::to_string(other - 1) + " has given up";
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_;
  }

 private:
  static std::size_t bytes_for(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return sizeof(Shared) + (ranks + 1) * kChunk + ranks * ranks * kMessage;
  }

  Shared::Rank& own() { return shared_->ranks[rank_]; }

  static void pause_until(Clock::time_point end, const char* otherwise) {
    if (Clock::now() > end) throw std::runtime_error(otherwise);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// Rank 0 makes the memory. For the others it is there once it has its size.
  void map(const std::string& name, Clock::time_point end) {
    int file = -1;
    if (rank_ == 0) {
      file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
      if (file < 0) throw std::runtime_error(system_error("shared memory"));
      // Otherwise a write to memory that is full would end the process.
      do {
        errno = posix_fallocate(file, 0, static_cast<off_t>(bytes_));
      } while (errno == EINTR);
      if (errno != 0) {
        const std::string why = system_error(std::to_string(bytes_) + " bytes of shared memory");
        close(file);
        throw std::runtime_error(why);
      }
    } else {
      while ((file = open(name.c_str(), O_RDWR)) < 0) {
        pause_until(end, "rank 0 has made no shared memory");
      }
      struct stat now {};
      while (fstat(file, &now) == 0 && static_cast<std::size_t>(now.st_size) < bytes_) {
        pause_until(end, "rank 0 has made no shared memory");
      }
    }
    void* const address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const std::string why = system_error("shared memory");
    close(file);
    if (address == MAP_FAILED) throw std::runtime_error(why);
    shared_ = static_cast<Shared*>(address);
    data_ = static_cast<char*>(address) + sizeof(Shared);
  }

  void unmap() {
    if (shared_ != nullptr) munmap(shared_, bytes_);
    shared_ = nullptr;
  }

  void check_alive(int other) {
    if (kill(shared_->ranks[other].process, 0) != 0 && errno == ESRCH) {
      fail("rank " + std::to_string(other) + " has ended");
    }
  }

  const int rank_;
  const int size_;
  const std::size_t bytes_;
  Shared* shared_ = nullptr;
  char* data_ = nullptr;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::string error_;
};

}  // namespace foo::simulator
