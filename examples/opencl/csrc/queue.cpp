#include "queue.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "devices.h"

namespace ocl {

namespace {

constexpr std::size_t kFlushEvery = 16;   // commands; a driver may wait for more before it starts
constexpr std::size_t kRetireEvery = 64;  // commands

}  // namespace

cl_int status_of(cl_event event) {
  cl_int status = CL_QUEUED;
  check("clGetEventInfo", api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof status, &status, nullptr));
  return status;
}

void Queue::keep(const char* what, cl_event event) {
  // The first command after a pause starts at once; later ones are passed on together.
  if (queued_.empty() || ++unflushed_ >= kFlushEvery) {
    unflushed_ = 0;
    check("clFlush", api().clFlush(queue_));
  }
  queued_.push_back({event, what});
  if (queued_.size() % kRetireEvery == 0) retire();
}

/// Forgets what has completed, from the oldest command on.
void Queue::retire() {
  while (!queued_.empty()) {
    const auto [event, what] = queued_.front();
    const cl_int status = status_of(event);
    if (status > CL_COMPLETE) return;
    if (status < 0 && failure_.empty()) {
      failure_ = std::string("`") + what + "` failed on the device: " + text_of(status);
    }
    api().clReleaseEvent(event);
    queued_.pop_front();
  }
}

void Queue::check_recording(const char* what, bool wanted) const {
  if (recording_ == wanted) return;
  throw std::runtime_error((wanted ? "the graph of OpenCL is complete, and cannot have `"
                                   : "a graph of OpenCL cannot have `") +
                           std::string(what) + "`");
}

Recorded Queue::end_capture() {
  const std::lock_guard<std::mutex> lock(mutex_);
  recording_ = false;
  return std::exchange(recorded_, {});
}

cl_event Queue::marker() {
  cl_event event = nullptr;
  add("clEnqueueMarkerWithWaitList", [&](cl_command_queue queue, cl_event* made) {
    const cl_int status = api().clEnqueueMarkerWithWaitList(queue, 0, nullptr, made);
    if (status != CL_SUCCESS) return status;
    event = *made;
    return api().clRetainEvent(event);
  });
  // Another queue may wait for it, which nothing else would bring to its device.
  check("clFlush", api().clFlush(queue_));
  return event;
}

std::shared_ptr<Faults> Queue::faults(bool recorded) {
  cl_context const context = device_at(device_).context;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Faults>& faults = recorded ? recorded_.faults : faults_;
  if (faults == nullptr) faults = std::make_shared<Faults>(context);
  return faults;
}

void Queue::expect(const std::shared_ptr<Faults>& faults) {
  const bool known = std::find(expected_.begin(), expected_.end(), faults) != expected_.end();
  if (!known) expected_.push_back(faults);
}

void Queue::wait() {
  const cl_int status = api().clFinish(queue_);  // without the lock: others may queue meanwhile
  raise_failure();
  check("clFinish", status);
  raise_fault();
}

void Queue::raise_fault() {
  std::vector<std::shared_ptr<Faults>> expected;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    expected.swap(expected_);
  }
  std::optional<std::string> first;
  for (const auto& faults : expected) {  // without the lock: others may queue meanwhile
    const std::optional<std::string> found = faults->take(queue_);
    if (!first.has_value()) first = found;
  }
  if (first.has_value()) throw std::out_of_range(*first);
}

bool Queue::idle() {
  raise_failure();
  const std::lock_guard<std::mutex> lock(mutex_);
  unflushed_ = 0;
  check("clFlush", api().clFlush(queue_));
  return queued_.empty();
}

void Queue::raise_failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  retire();
  if (!failure_.empty()) throw std::runtime_error(std::exchange(failure_, {}));
}

}  // namespace ocl
