#include "simulator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <backendkit/handles.h>

namespace {{device}}::simulator {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAlignment = 64;

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::size_t memory_of_a_device() {
  static const std::size_t bytes =
      from_environment("{{device_upper}}_SIMULATOR_MEMORY", std::size_t{16} << 30);
  return bytes;
}

void* host_memory(std::size_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

/// Pinned memory: its blocks by their first address, with their sizes.
class HostBlocks {
 public:
  void add(const void* begin, std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.emplace(begin, bytes);
  }

  void remove(const void* begin) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase(begin);
  }

  bool contains(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return static_cast<const char*>(address) < static_cast<const char*>(begin) + bytes;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::size_t> blocks_;
};

HostBlocks& host_blocks() {
  static auto* const all = new HostBlocks;
  return *all;
}

/// The handle of a simulated buffer is the host memory with its bytes, which has another address.
void* allocate_apart(std::size_t bytes, int device) {
  void* const inside = host_memory(bytes);
  if (inside == nullptr) return nullptr;
  void* const address = backendkit::map_buffer(inside, bytes, device);
  if (address == nullptr) std::free(inside);
  return address;
}

}  // namespace

using Tasks = std::vector<std::function<void()>>;

class Graph {
 public:
  explicit Graph(Tasks tasks) : tasks(std::make_shared<Tasks>(std::move(tasks))) {}

  const std::shared_ptr<const Tasks> tasks;
};

class Stream {
 public:
  void add(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (recorded_) {
      recorded_->push_back(std::move(task));
      return;
    }
    if (added_ == 0) std::thread([this] { work(); }).detach();
    tasks_.push_back(std::move(task));
    ++added_;
    changed_.notify_all();
  }

  /// Waits for the tasks added so far.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, until = added_] { return done_ >= until; });
  }

  bool idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return done_ == added_;
  }

  void begin_capture() {
    const std::lock_guard<std::mutex> lock(mutex_);
    recorded_.emplace();
  }

  Tasks end_capture() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Tasks tasks = std::move(recorded_.value());
    recorded_.reset();
    return tasks;
  }

 private:
  [[noreturn]] void work() {
    static const std::size_t delay = from_environment("{{device_upper}}_SIMULATOR_DELAY", 0);
    std::minstd_rand random(std::random_device{}());
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (delay > 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % (delay + 1)));
      task();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::optional<Tasks> recorded_;  // while a graph is captured
  std::size_t added_ = 0;
  std::size_t done_ = 0;
};

/// Has no time until it is recorded. Streams that wait for the event keep its time instead of the
/// event itself, which may be destroyed meanwhile.
class Event {
 public:
  using Time = std::shared_future<Clock::time_point>;

  Time last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return time_;
  }

  void record(Stream& stream) {
    const auto reached = std::make_shared<std::promise<Clock::time_point>>();
    const std::lock_guard<std::mutex> lock(mutex_);
    time_ = reached->get_future().share();
    stream.add([reached] { reached->set_value(Clock::now()); });
  }

 private:
  std::mutex mutex_;
  Time time_;
};

namespace {

struct Device {
  Stream default_stream;
  std::mutex mutex;
  std::vector<Stream*> others;
  std::size_t used = 0;
};

Device& device_of(int index) {
  static auto* const devices = new std::array<Device, kDevices>;
  return devices->at(static_cast<std::size_t>(index));
}

}  // namespace

int device_count() {
  static const std::size_t count = from_environment("{{device_upper}}_SIMULATOR_DEVICES", kDevices);
  return static_cast<int>(std::min(count, std::size_t{kDevices}));
}

void* allocate(std::size_t bytes, int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  if (bytes > memory_of_a_device() - where.used) return nullptr;
  void* const pointer = kUnified ? host_memory(bytes) : allocate_apart(bytes, device);
  if (pointer != nullptr) where.used += bytes;
  return pointer;
}

void deallocate(void* pointer, std::size_t bytes, int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  where.used -= bytes;
  std::free(kUnified ? pointer : backendkit::unmap_buffer(pointer));
}

backendkit::MemoryInfo memory_info(int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  return {memory_of_a_device() - where.used, memory_of_a_device()};
}

void* inside(const void* address, std::size_t bytes, int device) {
  if (kUnified || address == nullptr) return const_cast<void*>(address);
  const backendkit::Location place = backendkit::locate(address, bytes);
  if (device >= 0 && device != place.device) {
    throw std::out_of_range("the address is in the memory of another simulated device");
  }
  return static_cast<char*>(place.handle) + place.offset;
}

void* allocate_host(std::size_t bytes) {
  void* const pointer = host_memory(bytes);
  if (pointer != nullptr) host_blocks().add(pointer, bytes);
  return pointer;
}

void deallocate_host(void* pointer) {
  host_blocks().remove(pointer);
  std::free(pointer);
}

bool is_host_pointer(const void* pointer) { return host_blocks().contains(pointer); }

Stream* create_stream(int device) {
  Device& all = device_of(device);
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.others.emplace_back(new Stream);
}

Stream& stream_of(void* handle, int device) {
  return handle == nullptr ? device_of(device).default_stream : *static_cast<Stream*>(handle);
}

void add(Stream& stream, std::function<void()> task) { stream.add(std::move(task)); }

void wait(Stream& stream) { stream.wait(); }

bool idle(Stream& stream) { return stream.idle(); }

void wait_for_all(int device) {
  Device& all = device_of(device);
  std::vector<Stream*> others;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    others = all.others;
  }
  all.default_stream.wait();
  for (Stream* const stream : others) stream->wait();
}

void begin_capture(Stream& stream) { stream.begin_capture(); }

Graph* end_capture(Stream& stream) { return new Graph(stream.end_capture()); }

void replay(Graph& graph, Stream& stream) {
  stream.add([tasks = graph.tasks] {
    for (const auto& task : *tasks) task();
  });
}

void destroy(Graph* graph) { delete graph; }

Event* create_event() { return new Event; }

void destroy(Event* event) { delete event; }

void record(Event& event, Stream& stream) { event.record(stream); }

void wait(Stream& stream, Event& event) {
  const Event::Time time = event.last();
  if (time.valid()) stream.add([time] { time.wait(); });
}

void wait(Event& event) {
  const Event::Time time = event.last();
  if (time.valid()) time.wait();
}

bool done(Event& event) {
  const Event::Time time = event.last();
  return !time.valid() || time.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

double milliseconds(Event& start, Event& end) {
  const auto taken = end.last().get() - start.last().get();
  return std::chrono::duration<double, std::milli>(taken).count();
}

}  // namespace {{device}}::simulator
