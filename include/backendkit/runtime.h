// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace at {
class Tensor;
}

namespace backendkit {

/// The direction of `Runtime::copy`. A device-to-device copy stays within one device.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };

/// A stream of the vendor's driver, as PyTorch passes it around; null is a device's default stream.
/// Work on one stream runs in order; work on different streams may run at the same time.
using StreamHandle = void*;

/// An event of the vendor's driver: a point in a stream's work.
using EventHandle = void*;

/// A device's memory in bytes, for all processes together.
struct MemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
  std::size_t largest = 0;  ///< the most that the driver allocates at once; 0: it sets no limit
};

/// The result of `torch.foo.get_device_properties()`. What a driver does not report stays empty.
struct DeviceProperties {
  std::string name;
  std::size_t total_memory = 0;   ///< in bytes
  int multi_processor_count = 0;  ///< number of units that compute in parallel
  int major = 0;                  ///< of the capability, which determines what kernels it can run
  int minor = 0;
};

/// Work that the vendor's driver has recorded, to run again.
using GraphHandle = void*;

/// What a backend keeps with a tensor besides its values, as it is saved: true or false by name.
/// PyTorch uses the names "conj" and "neg" itself.
using TensorMetadata = std::unordered_map<std::string, bool>;

// The required functions of a vendor's Runtime, one concept each. All are static, and several
// threads may call them at once. Devices are numbered from 0. Whatever a function throws becomes
// the error that the Python user sees, or a warning if the function must not throw. See driver.h.

/// `int device_count()`: returns the number of devices; 0 when there is no driver. Called once per
/// process. If it throws, there are no devices, and the first use of the device raises that error.
template <class Runtime>
concept HasDeviceCount = requires {
  { Runtime::device_count() } -> std::same_as<int>;
};

/// `int current_device()`: returns the calling thread's current device.
template <class Runtime>
concept HasCurrentDevice = requires {
  { Runtime::current_device() } -> std::same_as<int>;
};

/// `void set_device(int device)`: makes a device the calling thread's current one.
template <class Runtime>
concept HasSetDevice = requires(int device) {
  { Runtime::set_device(device) } -> std::same_as<void>;
};

/// `void* allocate(std::size_t bytes, int device)`: allocates memory on a device, at least one
/// byte, aligned for any type of number; returns null when there is not enough.
template <class Runtime>
concept HasAllocate = requires(std::size_t bytes, int device) {
  { Runtime::allocate(bytes, device) } -> std::same_as<void*>;
};

/// `void deallocate(void* pointer, std::size_t bytes, int device)`: frees what `allocate` returned
/// for the same number of bytes. All work that used the memory has completed. Must not throw.
template <class Runtime>
concept HasDeallocate = requires(void* pointer, std::size_t bytes, int device) {
  { Runtime::deallocate(pointer, bytes, device) } -> std::same_as<void>;
};

/// `void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
/// backendkit::StreamHandle stream)`: copies, in order with other work on the stream, which belongs
/// to the current device. The copy has completed when the function returns, unless the Runtime has
/// streams (see `HasStreams`).
template <class Runtime>
concept HasCopy = requires(void* dst, const void* src, std::size_t bytes, CopyKind kind,
                           StreamHandle stream) {
  { Runtime::copy(dst, src, bytes, kind, stream) } -> std::same_as<void>;
};

/// `void synchronize(int device)`: waits until all work on a device has completed.
template <class Runtime>
concept HasSynchronize = requires(int device) {
  { Runtime::synchronize(device) } -> std::same_as<void>;
};

/// `bool host_accessible(int device)`, which a Runtime may declare: returns whether the host can
/// read and write the memory that `allocate` returns, at the same addresses; always the same for
/// one device. `static constexpr bool host_accessible = true` says so of all devices. Operators
/// that fall back to the CPU then copy nothing. Before the host accesses the memory, it waits for
/// the current stream, or calls `synchronize` if there are no streams.
template <class Runtime>
concept HasHostAccessible = requires(int device) {
  { Runtime::host_accessible(device) } -> std::same_as<bool>;
};

/// Whether the host may be able to access the memory of a device, as far as the compiler knows.
template <class Runtime>
constexpr bool may_be_host_accessible() {
  if constexpr (HasHostAccessible<Runtime>) {
    return true;
  } else if constexpr (requires { &Runtime::host_accessible; }) {
    static_assert(std::same_as<decltype(Runtime::host_accessible), const bool>,
                  "Runtime::host_accessible must be: static bool host_accessible(int device), or "
                  "static constexpr bool host_accessible = true");
    return Runtime::host_accessible;
  } else {
    return false;
  }
}

// The optional functions of a Runtime. The functions of a group together enable a feature; without
// them the feature raises a NotImplementedError that names the missing function. A function with a
// wrong signature is a compile error.

/// `backendkit::StreamHandle create_stream(int device, int priority)`: creates a stream; never
/// null. Priorities range from -3 to 3: a lower number is a higher priority, and 0 is the default.
/// Use the nearest one that the driver has. Streams live as long as the process.
template <class Runtime>
concept HasCreateStream = requires(int device, int priority) {
  { Runtime::create_stream(device, priority) } -> std::same_as<StreamHandle>;
};

/// `void synchronize_stream(backendkit::StreamHandle stream, int device)`: waits until all work on
/// a stream, or on the default stream if it is null, has completed.
template <class Runtime>
concept HasSynchronizeStream = requires(StreamHandle stream, int device) {
  { Runtime::synchronize_stream(stream, device) } -> std::same_as<void>;
};

/// `bool query_stream(backendkit::StreamHandle stream, int device)`: returns whether all work on a
/// stream has completed.
template <class Runtime>
concept HasQueryStream = requires(StreamHandle stream, int device) {
  { Runtime::query_stream(stream, device) } -> std::same_as<bool>;
};

/// Streams: `torch.Stream`, and work that continues on any stream after the call that queued it has
/// returned. Needs the three functions above. `copy` may then return early too; before the host
/// reads or writes the memory, BackendKit calls `synchronize_stream`.
template <class Runtime>
concept HasStreams =
    HasCreateStream<Runtime> && HasSynchronizeStream<Runtime> && HasQueryStream<Runtime>;

/// `backendkit::EventHandle create_event(int device, bool timing)`: creates an event, which
/// counts as complete until it is recorded; `timing` is true if PyTorch will ask for its time.
template <class Runtime>
concept HasCreateEvent = requires(int device, bool timing) {
  { Runtime::create_event(device, timing) } -> std::same_as<EventHandle>;
};

/// `void destroy_event(backendkit::EventHandle event, int device)`: destroys an event;
/// streams already waiting on it keep waiting until it completes. Does not throw.
template <class Runtime>
concept HasDestroyEvent = requires(EventHandle event, int device) {
  { Runtime::destroy_event(event, device) } -> std::same_as<void>;
};

/// `void record_event(backendkit::EventHandle event, backendkit::StreamHandle stream, int device)`:
/// records the event: it completes once all work queued on the stream so far has completed. May be
/// called again.
template <class Runtime>
concept HasRecordEvent = requires(EventHandle event, StreamHandle stream, int device) {
  { Runtime::record_event(event, stream, device) } -> std::same_as<void>;
};

/// `void wait_event(backendkit::StreamHandle stream, backendkit::EventHandle event, int device)`:
/// makes work queued from now on on the stream, which belongs to the device, wait until the event,
/// as last recorded, completes. The event may belong to another device. Returns immediately.
template <class Runtime>
concept HasWaitEvent = requires(StreamHandle stream, EventHandle event, int device) {
  { Runtime::wait_event(stream, event, device) } -> std::same_as<void>;
};

/// `bool query_event(backendkit::EventHandle event, int device)`: returns whether an event has
/// completed.
template <class Runtime>
concept HasQueryEvent = requires(EventHandle event, int device) {
  { Runtime::query_event(event, device) } -> std::same_as<bool>;
};

/// `void synchronize_event(backendkit::EventHandle event, int device)`: waits until an event has
/// completed.
template <class Runtime>
concept HasSynchronizeEvent = requires(EventHandle event, int device) {
  { Runtime::synchronize_event(event, device) } -> std::same_as<void>;
};

/// Events: `torch.Event`, `wait_stream`, and memory that several streams use. Needs the six
/// functions above.
template <class Runtime>
concept HasEvents =
    HasCreateEvent<Runtime> && HasDestroyEvent<Runtime> && HasRecordEvent<Runtime> &&
    HasWaitEvent<Runtime> && HasQueryEvent<Runtime> && HasSynchronizeEvent<Runtime>;

/// `double elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int device)`:
/// returns the milliseconds between two completed events that were created with timing. Enables
/// `torch.Event.elapsed_time`.
template <class Runtime>
concept HasElapsedMs = requires(EventHandle start, EventHandle end, int device) {
  { Runtime::elapsed_ms(start, end, device) } -> std::same_as<double>;
};

/// `backendkit::MemoryInfo memory_info(int device)`: returns the free and total memory. Enables
/// `mem_get_info`, and the figures in the error of a device that is out of memory.
template <class Runtime>
concept HasMemoryInfo = requires(int device) {
  { Runtime::memory_info(device) } -> std::same_as<MemoryInfo>;
};

/// `void* allocate_host(std::size_t bytes)`: allocates host memory, aligned for any type of number,
/// that `copy` can use while the host continues; returns null when there is not enough.
template <class Runtime>
concept HasAllocateHost = requires(std::size_t bytes) {
  { Runtime::allocate_host(bytes) } -> std::same_as<void*>;
};

/// `void deallocate_host(void* pointer, std::size_t bytes)`: frees what `allocate_host` returned
/// for the same number of bytes. All work that used the memory has completed. Must not throw.
template <class Runtime>
concept HasDeallocateHost = requires(void* pointer, std::size_t bytes) {
  { Runtime::deallocate_host(pointer, bytes) } -> std::same_as<void>;
};

/// `bool is_host_pointer(const void* pointer)`: returns whether a pointer points into memory of
/// `allocate_host`, or into other memory that the driver treats as pinned.
template <class Runtime>
concept HasIsHostPointer = requires(const void* pointer) {
  { Runtime::is_host_pointer(pointer) } -> std::same_as<bool>;
};

/// Pinned memory: `pin_memory`, and copies with `non_blocking=True` that the host does not wait
/// for. Needs the three functions above.
template <class Runtime>
concept HasPinnedMemory =
    HasAllocateHost<Runtime> && HasDeallocateHost<Runtime> && HasIsHostPointer<Runtime>;

/// `bool can_access_peer(int device, int peer)`: returns whether `copy_peer` can copy from `device`
/// to `peer`.
template <class Runtime>
concept HasCanAccessPeer = requires(int device, int peer) {
  { Runtime::can_access_peer(device, peer) } -> std::same_as<bool>;
};

/// `void copy_peer(void* dst, int dst_device, const void* src, int src_device, std::size_t bytes,
/// backendkit::StreamHandle stream)`: copies from one device to another, in order with other work
/// on the stream, which belongs to `src_device`, the current device. The copy has completed when
/// the function returns, unless the Runtime has streams.
template <class Runtime>
concept HasCopyPeer = requires(void* dst, int dst_device, const void* src, int src_device,
                               std::size_t bytes, StreamHandle stream) {
  { Runtime::copy_peer(dst, dst_device, src, src_device, bytes, stream) } -> std::same_as<void>;
};

/// Copies between devices that bypass the host. Needs the two functions above.
template <class Runtime>
concept HasPeers = HasCanAccessPeer<Runtime> && HasCopyPeer<Runtime>;

/// `void begin_capture(backendkit::StreamHandle stream, int device)`: from now on, work queued on
/// the stream is recorded instead of run. The stream is not the default one. If it throws, nothing
/// is recorded.
template <class Runtime>
concept HasBeginCapture = requires(StreamHandle stream, int device) {
  { Runtime::begin_capture(stream, device) } -> std::same_as<void>;
};

/// `backendkit::GraphHandle end_capture(backendkit::StreamHandle stream, int device)`: ends it and
/// returns what was recorded; never null. If it throws, the stream runs its work again all the
/// same. Also called after a capture that failed.
template <class Runtime>
concept HasEndCapture = requires(StreamHandle stream, int device) {
  { Runtime::end_capture(stream, device) } -> std::same_as<GraphHandle>;
};

/// `void instantiate_graph(backendkit::GraphHandle graph, int device)`: prepares a graph to run.
/// Called once, before the first `replay_graph`.
template <class Runtime>
concept HasInstantiateGraph = requires(GraphHandle graph, int device) {
  { Runtime::instantiate_graph(graph, device) } -> std::same_as<void>;
};

/// `void replay_graph(backendkit::GraphHandle graph, backendkit::StreamHandle stream, int device)`:
/// queues the recorded work, with the addresses that it had, in order with other work on the
/// stream.
template <class Runtime>
concept HasReplayGraph = requires(GraphHandle graph, StreamHandle stream, int device) {
  { Runtime::replay_graph(graph, stream, device) } -> std::same_as<void>;
};

/// `void destroy_graph(backendkit::GraphHandle graph, int device)`: destroys a graph, all of whose
/// runs have completed. Must not throw.
template <class Runtime>
concept HasDestroyGraph = requires(GraphHandle graph, int device) {
  { Runtime::destroy_graph(graph, device) } -> std::same_as<void>;
};

/// Graphs: `torch.accelerator.Graph` of PyTorch 2.12 and newer. Needs the five functions above, and
/// those for streams.
template <class Runtime>
concept HasGraphs = HasStreams<Runtime> && HasBeginCapture<Runtime> && HasEndCapture<Runtime> &&
    HasInstantiateGraph<Runtime> && HasReplayGraph<Runtime> && HasDestroyGraph<Runtime>;

/// `bool copy_elements(const at::Tensor& src, const at::Tensor& dst)`: copies the elements of one
/// tensor to the other, converting them to its dtype, in order with other work on the current
/// stream. Both are on the current device and have the same sizes; strides and dtypes differ as
/// they like, and no element of `dst` is in the memory of another, or of `src`. Returns false, and
/// does nothing, if the device has no kernel for these; then the host copies. Used for copies
/// within a device that are not copies of bytes, and for the elements of tensors with gaps that
/// come from the host or go there.
template <class Runtime>
concept HasCopyElements = requires(const at::Tensor& src, const at::Tensor& dst) {
  { Runtime::copy_elements(src, dst) } -> std::same_as<bool>;
};

/// `backendkit::DeviceProperties properties(int device)`: called once per device in a process.
/// Enables `get_device_properties`, `get_device_name` and `get_device_capability` of `torch.foo`.
template <class Runtime>
concept HasProperties = requires(int device) {
  { Runtime::properties(device) } -> std::same_as<DeviceProperties>;
};

/// `void save_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata)`: adds what
/// the backend keeps with a tensor that is being saved or pickled.
template <class Runtime>
concept HasSaveMetadata = requires(const at::Tensor& tensor, TensorMetadata& metadata) {
  { Runtime::save_metadata(tensor, metadata) } -> std::same_as<void>;
};

/// `void load_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata)`: attaches
/// to a loaded tensor what `save_metadata` added for the saved one, if it added anything.
template <class Runtime>
concept HasLoadMetadata = requires(const at::Tensor& tensor, TensorMetadata& metadata) {
  { Runtime::load_metadata(tensor, metadata) } -> std::same_as<void>;
};

/// Metadata: saves what a backend keeps with a tensor, as its `c10::BackendMeta`, together with the
/// tensor. Needs the two functions above.
template <class Runtime>
concept HasMetadata = HasSaveMetadata<Runtime> && HasLoadMetadata<Runtime>;

}  // namespace backendkit
