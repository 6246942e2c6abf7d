// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/DeviceGuard.h>

#include <backendkit/allocator.h>
#include <backendkit/captures.h>
#include <backendkit/device/display_name.h>
#include <backendkit/device/late_error.h>
#include <backendkit/stream.h>
#include <backendkit/torch_version.h>

namespace backendkit {

/// The pools of graphs' memory, which graphs may share: the memory of a pool is kept as long as a
/// graph uses it, because each run writes to it again.
template <class Runtime>
class GraphPools {
 public:
  /// A number that no pool has had.
  static std::uint64_t make() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  static void acquire(c10::DeviceIndex device, std::int64_t memory) {
    const std::lock_guard<std::mutex> lock(mutex());
    if (users()[{device, memory}]++ == 0) Allocator<Runtime>::cache(device).keep(memory);
  }

  static void release(c10::DeviceIndex device, std::int64_t memory) {
    const std::lock_guard<std::mutex> lock(mutex());
    const auto found = users().find({device, memory});
    if (--found->second > 0) return;
    users().erase(found);
    Allocator<Runtime>::cache(device).release(memory);
  }

 private:
  // Graphs may outlive static objects.
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }

  static std::map<std::pair<c10::DeviceIndex, std::int64_t>, int>& users() {
    static auto* const all = new std::map<std::pair<c10::DeviceIndex, std::int64_t>, int>;
    return *all;
  }
};

/// What a graph has of a device. To give it back, the device must be waited for. A driver may
/// refuse that while a stream of the device records, and Python may collect a graph at any time. So
/// it is given back when no stream of the device records.
template <class Runtime>
struct GraphRemains {
  c10::DeviceIndex device = 0;
  GraphHandle graph = nullptr;
  std::optional<std::int64_t> memory;
  bool replayed = false;

  /// Afterwards there is nothing left here. If the driver throws while the device is waited for,
  /// everything is.
  void give_back() {
    if (postpone()) return;
    if (replayed) Devices<Runtime>::synchronize(device);
    release();
  }

  /// Like `give_back`, but an error of the device's work is told by the program's next wait, and
  /// what cannot be given back is lost, with a warning.
  void give_back_or_warn() {
    if (postpone()) return;
    for (int waits = 1;; ++waits) {
      try {
        if (replayed) Devices<Runtime>::wait(device);
        return release();
      } catch (const c10::Error& error) {
        if (replayed) LateError::keep();
        if (replayed && waits < kMostWaits) continue;
        return warn_only("a graph could not be destroyed: ", error.what_without_backtrace());
      }
    }
  }

  /// Gives back what was postponed. Each capture calls this after its end.
  static void give_back_postponed() {
    std::vector<GraphRemains> all;
    {
      const std::lock_guard<std::mutex> lock(mutex());
      all.swap(postponed());
    }
    for (GraphRemains& one : all) one.give_back_or_warn();
  }

 private:
  static constexpr int kMostWaits = 4;  ///< each may end early, with the error of other work

  /// Whether a stream of the device records; what is here waits for its end then.
  bool postpone() {
    const std::lock_guard<std::mutex> lock(mutex());
    if (!Captures::recording_on(device)) return false;
    postponed().push_back(std::exchange(*this, {}));
    return true;
  }

  void release() {
    replayed = false;
    if (graph != nullptr) Driver<Runtime>::destroy_graph(std::exchange(graph, nullptr), device);
    if (memory) GraphPools<Runtime>::release(device, *std::exchange(memory, std::nullopt));
  }

  // Graphs may outlive static objects.
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }

  static std::vector<GraphRemains>& postponed() {
    static auto* const all = new std::vector<GraphRemains>;
    return *all;
  }
};

/// `torch.accelerator.Graph` of the device, an at::GraphImplInterface. What cannot be recorded
/// throws where it happens, see Captures, and `capture_end` throws again: a part of the work would
/// be missing. Like PyTorch's other graphs, one object is for one thread at a time.
template <class Runtime>
class Graph final : public GraphImplBase {
 public:
  /// Throws if there is no device, because `torch.accelerator.Graph()` raises then without a
  /// backend as well.
  explicit Graph(const GraphArguments& arguments = {}) : keep_(keep_graph(arguments)) {
    Devices<Runtime>::checked(Devices<Runtime>::current());
  }

  ~Graph() override {
    if (Devices<Runtime>::forked()) return;  // the driver's graph belongs to the parent
    try {
      if (capturing_) stop();
    } catch (const c10::Error& error) {
      warn_only("a capture could not be ended: ", error.what_without_backtrace());
    }
    held_.give_back_or_warn();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Records the current stream of the current device. All modes are the same: only work of that
  /// stream is recorded, and only what concerns it is refused, whichever thread does it.
  void capture_begin(MempoolId pool = {0, 0}, GraphMode = {}) override {
    TORCH_CHECK(!capturing_ && held_.graph == nullptr,
                "capture_begin: this graph has recorded already; call `reset` first");
    TORCH_CHECK_VALUE(pool.first == 0 && pool.second < kMostPools,
                      "capture_begin: the pool is not one that `Graph.pool` returned");
    const auto device =
        static_cast<c10::DeviceIndex>(Devices<Runtime>::checked(Devices<Runtime>::current()));
    const c10::StreamId stream = Streams<Runtime>::current(device);
    TORCH_CHECK(stream != 0, "a graph cannot record the default stream: use another one, as in ",
                "`with torch.Stream(), graph:`");
    Devices<Runtime>::use();
    const std::uint64_t number = pool.second == 0 ? GraphPools<Runtime>::make() : pool.second;
    Captures::begin(device, stream, number);
    try {
      Driver<Runtime>::begin_capture(Streams<Runtime>::handle(device, stream), device);
    } catch (...) {
      ended(device, stream);
      throw;
    }
    stream_ = stream;
    pool_ = number;
    capturing_ = true;
    held_.device = device;
    const std::int64_t memory = Captures::memory_in(number, stream);
    GraphPools<Runtime>::acquire(device, memory);
    held_.memory = memory;
  }

  void capture_end() override {
    TORCH_CHECK(capturing_, "capture_end: no capture has begun");
    try {
      const std::string failure = stop();
      TORCH_CHECK(failure.empty(), "the graph is not complete: ", failure);
      if (!keep_) instantiate();
    } catch (...) {
      reset();
      throw;
    }
  }

  void instantiate() override {
    TORCH_CHECK(held_.graph != nullptr, "instantiate: nothing has been recorded");
    if (instantiated_) return;
    const c10::DeviceGuard guard(c10::Device(kDeviceType, held_.device));
    Driver<Runtime>::instantiate_graph(held_.graph, held_.device);
    instantiated_ = true;
  }

  /// Runs on the calling thread's current stream of the graph's device.
  void replay() override {
    TORCH_CHECK(held_.graph != nullptr, "replay: nothing has been recorded");
    instantiate();
    const c10::DeviceIndex device = held_.device;
    Streams<Runtime>::cannot_record(device, "the run of another graph");
    const c10::DeviceGuard guard(c10::Device(kDeviceType, device));
    held_.replayed = true;
    Driver<Runtime>::replay_graph(held_.graph, current_stream<Runtime>(device), device);
  }

  /// Waits for the device if the graph has run, and gives its memory back; while a stream of the
  /// device records, this happens at the end of that capture.
  void reset() override {
    if (capturing_) stop();
    held_.give_back();
    instantiated_ = false;
  }

  MempoolId pool() const override {
    TORCH_CHECK(pool_ != 0, "pool: no capture has begun");
    return {0, pool_};
  }

  void enable_debug_mode() override {}

  void debug_dump(const std::string&) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "debug_dump: the graphs of ", DisplayName::get(),
                                " cannot be written to a file");
  }

 private:
  static constexpr std::uint64_t kMostPools = std::uint64_t{1} << 40;

  /// Ends the capture. Returns why the graph cannot be used; "" if it can.
  std::string stop() {
    capturing_ = false;
    const c10::DeviceIndex device = held_.device;
    try {
      held_.graph = Driver<Runtime>::end_capture(Streams<Runtime>::handle(device, stream_), device);
    } catch (...) {
      ended(device, stream_);
      throw;
    }
    return ended(device, stream_);
  }

  /// What follows when the driver records no longer. Returns why the graph cannot be used.
  static std::string ended(c10::DeviceIndex device, c10::StreamId stream) {
    std::string failure = Captures::end(device, stream);
    GraphRemains<Runtime>::give_back_postponed();
    return failure;
  }

  const bool keep_;  ///< whether `instantiate` is left to the program
  GraphRemains<Runtime> held_;
  c10::StreamId stream_ = 0;
  std::uint64_t pool_ = 0;
  bool capturing_ = false;
  bool instantiated_ = false;
};

/// Makes `torch.accelerator.Graph` use the Runtime's graphs, if it and this PyTorch have them.
template <class Runtime>
void register_graphs() {
  if constexpr (HasGraphs<Runtime> && kHasGraphs) register_graph<Graph<Runtime>>();
}

}  // namespace backendkit
