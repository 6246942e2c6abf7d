// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <backendkit/captures.h>
#include <backendkit/device/device.h>
#include <backendkit/profiler/kineto.h>
#include <backendkit/profiler/timed_event.h>

namespace backendkit {

/// What torch.profiler shows of the device in one recording: the work of each operator that called
/// no other operator and made a device current, as the guard before its kernel does. The work is
/// shown on that device, from an event recorded when the guard started to one recorded when the
/// operator ended, each on the stream that was current then. The profiler reports all operators of
/// all threads to a recording.
template <class Runtime>
class DeviceTrace final : public libkineto::IActivityProfilerSession {
 public:
  /// Operators whose names begin with `own` are left out: those of the device's Python module.
  explicit DeviceTrace(std::string own) : own_(std::move(own)) {}

  ~DeviceTrace() override {
    const std::lock_guard<std::mutex> lock(latest_mutex_);
    if (latest_ == this) latest_ = nullptr;
  }
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;

  void start() override {
    {
      const std::lock_guard<std::mutex> lock(latest_mutex_);
      latest_ = this;
    }
    Devices<Runtime>::on_exchange(&begin_work);
    const std::lock_guard<std::mutex> lock(mutex_);
    recording_ = true;
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    recording_ = false;
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return errors_;
  }

  /// An operator starts. Never throws into the operator: a driver error ends the recording of the
  /// device.
  void pushCorrelationId(std::uint64_t id) override {
    Calls& calls = calls_of_this_thread();
    if (!calls.empty()) calls.back().leaf = false;
    calls.push_back({this, id, nullptr});
  }

  void popCorrelationId() override {
    Calls& calls = calls_of_this_thread();
    if (calls.empty()) return;
    Call call = std::move(calls.back());
    calls.pop_back();
    if (!call.leaf || call.session != this || call.start == nullptr) return;
    Time end = event(call.start->device());
    if (end == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    works_.push_back({call.id, std::move(call.start), std::move(end)});
  }

  void processTrace(libkineto::ActivityLogger&) override {}

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked,
                    std::int64_t from, std::int64_t to) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(from, to, "Device");
    try {
      for (const Work& work : works_) add(work, linked);
    } catch (const std::exception& error) {
      fail(error);
    }
    buffer_->gpuOpCount = static_cast<int>(buffer_->activities.size());
    for (const auto& activity : buffer_->activities) activity->log(logger);
    works_.clear();
    origins_.clear();
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer_);
  }

 private:
  using Time = std::unique_ptr<TimedEvent<Runtime>>;

  struct Call {
    const DeviceTrace* session;
    std::uint64_t id;
    Time start;  ///< null if it did not use the device
    bool leaf = true;
    bool guarded = false;  ///< it made a device current
  };
  using Calls = std::vector<Call>;

  struct Work {
    std::uint64_t id;
    Time start;
    Time end;
  };

  /// An event, and the host's time in nanoseconds when it had completed.
  struct Origin {
    Time event;
    std::int64_t nanoseconds;
  };

  static Calls& calls_of_this_thread() {
    static thread_local Calls calls;
    return calls;
  }

  /// Called when this thread makes a device current: if that is the first time for its innermost
  /// operator, the operator's work starts. Profiling alone must not make a process use the device.
  static void begin_work(c10::DeviceIndex device) {
    Calls& calls = calls_of_this_thread();
    if (calls.empty() || !Devices<Runtime>::in_use()) return;
    Call& call = calls.back();
    if (!call.leaf || call.guarded) return;
    call.guarded = true;  // set first, because creating an event uses guards too
    const std::lock_guard<std::mutex> lock(latest_mutex_);
    if (call.session == latest_) call.start = latest_->event(device);
  }

  /// A point in the work of a device's current stream; null while not recording, and for work that
  /// a graph records.
  Time event(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!recording_) return nullptr;
    try {
      if (Captures::recording(device, Streams<Runtime>::current(device))) return nullptr;
      if (origins_.find(device) == origins_.end()) {
        auto first = std::make_unique<TimedEvent<Runtime>>(device);
        wait_for_earlier_work(*first);
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        origins_.emplace(device,
                         Origin{std::move(first),
                                std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
      }
      return std::make_unique<TimedEvent<Runtime>>(device);
    } catch (const std::exception& error) {
      fail(error);
      return nullptr;
    }
  }

  /// The program's next wait throws the error of such work, too.
  static void wait_for_earlier_work(const TimedEvent<Runtime>& point) {
    try {
      point.synchronize();
    } catch (const c10::Error&) {
      LateError::keep();
      throw;
    }
  }

  /// Ends the recording of the device; the caller holds `mutex_`.
  void fail(const std::exception& error) {
    recording_ = false;
    errors_.emplace_back(error.what());
    status_ = libkineto::TraceStatus::ERROR;
  }

  void add(const Work& work, const libkineto::getLinkedActivityCallback& linked) {
    const auto* const cause = linked(static_cast<std::int32_t>(work.id));
    if (cause == nullptr || cause->name().starts_with(own_)) return;
    const Origin& origin = origins_.at(work.start->device());
    const double start = work.start->ms_since(*origin.event);
    const double end = start + std::max(0.0, work.end->ms_since(*work.start));
    const std::string name = cause->name();
    buffer_->emplace_activity(buffer_->span, kind(name), name);
    libkineto::GenericTraceActivity& activity = *buffer_->activities.back();
    activity.startTime = origin.nanoseconds + static_cast<std::int64_t>(start * 1e6);
    activity.endTime = origin.nanoseconds + static_cast<std::int64_t>(end * 1e6);
    activity.id = static_cast<std::int32_t>(work.id);
    activity.device = work.start->device();
    activity.resource = static_cast<std::int32_t>(work.start->stream());
    activity.threadId = cause->getThreadId();
    activity.flow.id = static_cast<std::uint32_t>(work.id);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.linked = cause;
    activity.addMetadata("stream", work.start->stream());
    activity.addMetadata("device", static_cast<int>(work.start->device()));
  }

  static libkineto::ActivityType kind(const std::string& name) {
    const bool copies = name == "aten::copy_" || name == "aten::_copy_from" ||
                        name == "aten::_copy_from_and_resize";
    return copies ? libkineto::ActivityType::GPU_MEMCPY
                  : libkineto::ActivityType::CONCURRENT_KERNEL;
  }

  inline static std::mutex latest_mutex_;
  inline static DeviceTrace* latest_ = nullptr;  ///< the recording that started last

  const std::string own_;
  std::mutex mutex_;
  bool recording_ = false;
  std::map<c10::DeviceIndex, Origin> origins_;
  std::vector<Work> works_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

/// Creates a DeviceTrace for each recording that includes the device. If the Runtime cannot measure
/// times, warns once per process, and the recording has only the host's operators.
template <class Runtime>
class DeviceTracer final : public libkineto::IActivityProfiler {
 public:
  explicit DeviceTracer(std::string own) : own_(std::move(own)) {}

  const std::string& name() const override {
    static const std::string name = "BackendKit";
    return name;
  }

  const std::set<libkineto::ActivityType>& availableActivities() const override {
    static const std::set<libkineto::ActivityType> kinds{libkineto::ActivityType::CONCURRENT_KERNEL,
                                                         libkineto::ActivityType::GPU_MEMCPY};
    return kinds;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<libkineto::ActivityType>& kinds, const libkineto::Config&) override {
    if (kinds.count(libkineto::ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    if constexpr (HasElapsedMs<Runtime>) {
      return std::make_unique<DeviceTrace<Runtime>>(own_);
    } else {
      warn_without_timing<Runtime>();
      return nullptr;
    }
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      std::int64_t, std::int64_t, const std::set<libkineto::ActivityType>& kinds,
      const libkineto::Config& config) override {
    return configure(kinds, config);
  }

 private:
  const std::string own_;
};

inline void register_trace_maker(libkineto::ChildActivityProfilerFactory make) {
  libkineto::api().registerProfilerFactory(std::move(make));
}

}  // namespace backendkit
