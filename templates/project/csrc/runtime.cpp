#include "runtime.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <backendkit/stream.h>

// The simulator reads two variables of the environment:
//   {{device_upper}}_SIMULATOR_MEMORY  bytes of each device, else 16 GiB
//   {{device_upper}}_SIMULATOR_DELAY   microseconds by which work begins late at most, at random, else 0:
// with a delay of 200 a missing wait shows soon.

namespace {{device}} {

namespace {

using Clock = std::chrono::steady_clock;
using Task = std::function<void()>;

constexpr int kDevices = 2;
constexpr std::size_t kAlignment = 64;

thread_local int current = 0;

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Work that is done in order, by a thread that begins with the first.
class Stream {
 public:
  void add(Task task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (added_ == 0) std::thread([this] { work(); }).detach();
    tasks_.push_back(std::move(task));
    ++added_;
    changed_.notify_all();
  }

  /// Waits for the work that there is now.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, until = added_] { return done_ >= until; });
  }

  bool idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return done_ == added_;
  }

 private:
  [[noreturn]] void work() {
    static const std::size_t delay = from_environment("{{device_upper}}_SIMULATOR_DELAY", 0);
    std::minstd_rand random(std::random_device{}());
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      Task task = std::move(tasks_.front());
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
  std::deque<Task> tasks_;
  std::size_t added_ = 0;
  std::size_t done_ = 0;
};

struct Device {
  Stream default_stream;
  std::mutex mutex;
  std::vector<Stream*> others;
  std::size_t used = 0;
};

/// Devices and streams are never destroyed: their threads run until the process ends.
Device& device_of(int index) {
  static auto* const devices = new Device[kDevices];
  return devices[index];
}

Stream& stream_of(backendkit::StreamHandle handle, int device) {
  return handle == nullptr ? device_of(device).default_stream : *static_cast<Stream*>(handle);
}

/// The time at which a stream reaches what was recorded last; without one until then. Streams that
/// wait hold the time, not the event, which may be destroyed.
struct Event {
  using Time = std::shared_future<Clock::time_point>;

  Time last() {
    const std::lock_guard<std::mutex> lock(mutex);
    return time;
  }

  std::mutex mutex;
  Time time;
};

Event& event_of(backendkit::EventHandle handle) { return *static_cast<Event*>(handle); }

/// Memory of the host that was asked for as pinned, by address.
struct Pinned {
  std::mutex mutex;
  std::map<const void*, std::size_t> blocks;
};

Pinned& pinned() {
  static auto* const all = new Pinned;
  return *all;
}

std::size_t memory_of_a_device() {
  static const std::size_t bytes =
      from_environment("{{device_upper}}_SIMULATOR_MEMORY", std::size_t{16} << 30);
  return bytes;
}

}  // namespace

// Must not throw: PyTorch asks it in every process, also where there is no device.
int Runtime::device_count() { return kDevices; }

int Runtime::current_device() { return current; }

void Runtime::set_device(int device) { current = device; }

// Null means that the device has no such block left; PyTorch then raises torch.OutOfMemoryError.
void* Runtime::allocate(std::size_t bytes, int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  if (bytes > memory_of_a_device() - where.used) return nullptr;
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const pointer = std::aligned_alloc(kAlignment, whole);
  if (pointer != nullptr) where.used += bytes;
  return pointer;
}

// Nobody waits here: the work that used the memory is done.
void Runtime::deallocate(void* pointer, std::size_t bytes, int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  where.used -= bytes;
  std::free(pointer);
}

backendkit::MemoryInfo Runtime::memory_info(int device) {
  Device& where = device_of(device);
  const std::lock_guard<std::mutex> lock(where.mutex);
  return {memory_of_a_device() - where.used, memory_of_a_device()};
}

// Nothing has to be pinned here, only known.
void* Runtime::allocate_host(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const pointer = std::aligned_alloc(kAlignment, whole);
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  if (pointer != nullptr) pinned().blocks.emplace(pointer, bytes);
  return pointer;
}

void Runtime::deallocate_host(void* pointer, std::size_t) {
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  pinned().blocks.erase(pointer);
  std::free(pointer);
}

bool Runtime::is_host_pointer(const void* pointer) {
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  const auto after = pinned().blocks.upper_bound(pointer);
  if (after == pinned().blocks.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return static_cast<const char*>(pointer) < static_cast<const char*>(begin) + bytes;
}

// The simulated memory is the host's, so a copy of any kind is the same.
void Runtime::copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind,
                   backendkit::StreamHandle stream) {
  stream_of(stream, current).add([=] { std::memmove(dst, src, bytes); });
}

void Runtime::synchronize(int device) {
  Device& all = device_of(device);
  std::vector<Stream*> others;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    others = all.others;
  }
  all.default_stream.wait();
  for (Stream* const stream : others) stream->wait();
}

// Threads of the host have one priority here.
backendkit::StreamHandle Runtime::create_stream(int device, int) {
  Device& all = device_of(device);
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.others.emplace_back(new Stream);
}

void Runtime::synchronize_stream(backendkit::StreamHandle stream, int device) {
  stream_of(stream, device).wait();
}

bool Runtime::query_stream(backendkit::StreamHandle stream, int device) {
  return stream_of(stream, device).idle();
}

// Every event notes its time.
backendkit::EventHandle Runtime::create_event(int, bool) { return new Event; }

void Runtime::destroy_event(backendkit::EventHandle event, int) { delete &event_of(event); }

void Runtime::record_event(backendkit::EventHandle handle, backendkit::StreamHandle stream,
                           int device) {
  const auto reached = std::make_shared<std::promise<Clock::time_point>>();
  Event& event = event_of(handle);
  const std::lock_guard<std::mutex> lock(event.mutex);
  event.time = reached->get_future().share();
  stream_of(stream, device).add([reached] { reached->set_value(Clock::now()); });
}

void Runtime::wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event,
                         int device) {
  const Event::Time time = event_of(event).last();
  if (time.valid()) stream_of(stream, device).add([time] { time.wait(); });
}

bool Runtime::query_event(backendkit::EventHandle event, int) {
  const Event::Time time = event_of(event).last();
  return !time.valid() || time.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void Runtime::synchronize_event(backendkit::EventHandle event, int) {
  const Event::Time time = event_of(event).last();
  if (time.valid()) time.wait();
}

double Runtime::elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int) {
  const auto taken = event_of(end).last().get() - event_of(start).last().get();
  return std::chrono::duration<double, std::milli>(taken).count();
}

void launch(std::function<void()> kernel) {
  stream_of(backendkit::current_stream<Runtime>(current), current).add(std::move(kernel));
}

}  // namespace {{device}}
