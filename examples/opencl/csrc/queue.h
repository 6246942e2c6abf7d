#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faults.h"
#include "opencl.h"

namespace ocl {

/// How far a command is: CL_COMPLETE, more if it has not completed, less if it failed.
cl_int status_of(cl_event event);

struct ReleaseKernel {
  void operator()(cl_kernel kernel) const { api().clReleaseKernel(kernel); }
};

/// A kernel that is released with this.
using OwnKernel = std::unique_ptr<std::remove_pointer_t<cl_kernel>, ReleaseKernel>;

/// What a queue has recorded for a graph.
struct Recorded {
  cl_command_buffer_khr commands = nullptr;
  std::vector<OwnKernel> kernels;  ///< those of the commands
  std::shared_ptr<Faults> faults;  ///< null if no kernel has indices
};

/// An in-order queue of a device, which is a stream for PyTorch. Remembers what it queued, so that
/// work which fails later is named when somebody waits. Any thread may call any function.
class Queue {
 public:
  Queue(cl_command_queue queue, int device) : queue_(queue), device_(device) {}

  int device() const { return device_; }

  /// Queues a command: `enqueue` gets the queue and the place for the command's event, and returns
  /// the status. `what` names the command in errors and lives as long as the process. The next wait
  /// looks at `faults`, if the command's kernels report there. Throws if the queue records.
  template <class Enqueue>
  void add(const char* what, const Enqueue& enqueue,
           const std::shared_ptr<Faults>& faults = nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_recording(what, false);
    queue(what, enqueue);
    if (faults != nullptr) expect(faults);
  }

  /// Adds a kernel to the graph that the queue records, which keeps it: `record` gets the graph's
  /// commands and returns the status. Throws if the queue does not record.
  template <class Record>
  void add_to_graph(const char* what, OwnKernel kernel, const Record& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_recording(what, true);
    recorded_.kernels.push_back(std::move(kernel));
    check(what, record(recorded_.commands));
  }

  /// From now on, commands are recorded: `make` gets the queue and returns the place for them.
  template <class Make>
  void begin_capture(const Make& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    recorded_.commands = make(queue_);
    recording_ = true;
  }

  Recorded end_capture();

  bool recording() const { return recording_; }

  /// An event that completes with all that is queued so far; the caller releases it.
  cl_event marker();

  /// Where a kernel reports indices that are out of range, which is queued or recorded next.
  std::shared_ptr<Faults> faults(bool recorded);

  /// Waits until all that was queued has completed. Throws if any of it failed, or had an index
  /// that is out of range.
  void wait();

  /// Whether all that was queued has completed. Throws if any of it failed.
  bool idle();

  /// Throws std::out_of_range if a kernel had an index that is out of range, and forgets that.
  /// Waits, if there was a kernel that has indices.
  void raise_fault();

  /// Throws if work failed, and forgets that.
  void raise_failure();

 private:
  struct Queued {
    cl_event event;
    const char* what;
  };

  template <class Enqueue>
  void queue(const char* what, const Enqueue& enqueue) {
    cl_event event = nullptr;
    check(what, enqueue(queue_, &event));
    keep(what, event);
  }

  void expect(const std::shared_ptr<Faults>& faults);
  void keep(const char* what, cl_event event);
  void check_recording(const char* what, bool wanted) const;
  void retire();

  std::mutex mutex_;
  cl_command_queue const queue_;
  const int device_;
  std::deque<Queued> queued_;  ///< what has not completed when this was last asked
  std::size_t unflushed_ = 0;
  std::shared_ptr<Faults> faults_;  ///< of the kernels that are queued here, once one has indices
  /// Where kernels that were queued since the last wait may have reported something.
  std::vector<std::shared_ptr<Faults>> expected_;
  std::atomic<bool> recording_ = false;
  Recorded recorded_;    ///< so far, while this queue records
  std::string failure_;  ///< of the first command that failed since the last one was reported
};

}  // namespace ocl
