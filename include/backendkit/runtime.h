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

/// Which way `Runtime::copy` goes. Both ends of a copy on the device are on the same device.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };

/// A stream of the vendor's driver, as it is passed through PyTorch; null is the default stream of
/// a device. Work of one stream is done in order, that of two at the same time.
using StreamHandle = void*;

/// An event of the vendor's driver: a point in the work of a stream.
using EventHandle = void*;

/// The memory of a device in bytes, all processes together.
struct MemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// What a device is: `torch.foo.get_device_properties()`. What a driver does not tell stays empty.
struct DeviceProperties {
  std::string name;
  std::size_t total_memory = 0;   ///< in bytes
  int multi_processor_count = 0;  ///< how many parts compute at the same time
  int major = 0;                  ///< of the capability, which says what kernels it can run
  int minor = 0;
};

/// What a backend keeps with a tensor beside its numbers, as files have it: true or false by name.
/// The names "conj" and "neg" are PyTorch's.
using TensorMetadata = std::unordered_map<std::string, bool>;

// The required functions of a vendor's Runtime, one concept each. All are static, and may be called
// by several threads at once. Devices are numbered from 0; what a function throws becomes the error
// that the Python user sees, or a warning where it says that it does not throw. See driver.h.

/// `int device_count()`: how many devices there are; 0 when there is no driver. Called once in a
/// process. What it throws is the error of the first use, and there are no devices.
template <class Runtime>
concept HasDeviceCount = requires {
  { Runtime::device_count() } -> std::same_as<int>;
};

/// `int current_device()`: the current device of this thread.
template <class Runtime>
concept HasCurrentDevice = requires {
  { Runtime::current_device() } -> std::same_as<int>;
};

/// `void set_device(int device)`: makes a device this thread's current one.
template <class Runtime>
concept HasSetDevice = requires(int device) {
  { Runtime::set_device(device) } -> std::same_as<void>;
};

/// `void* allocate(std::size_t bytes, int device)`: memory of a device, aligned for any number, at
/// least one byte; null when there is not enough.
template <class Runtime>
concept HasAllocate = requires(std::size_t bytes, int device) {
  { Runtime::allocate(bytes, device) } -> std::same_as<void*>;
};

/// `void deallocate(void* pointer, std::size_t bytes, int device)`: gives back what `allocate` gave
/// for as many bytes. The work that used it is done. Does not throw.
template <class Runtime>
concept HasDeallocate = requires(void* pointer, std::size_t bytes, int device) {
  { Runtime::deallocate(pointer, bytes, device) } -> std::same_as<void>;
};

/// `void copy(void* dst, const void* src, std::size_t bytes, backendkit::CopyKind kind,
/// backendkit::StreamHandle stream)`: copies, in order with the work of the stream on the current
/// device. The copy is done when it returns, unless the Runtime has streams (see `HasStreams`).
template <class Runtime>
concept HasCopy = requires(void* dst, const void* src, std::size_t bytes, CopyKind kind,
                           StreamHandle stream) {
  { Runtime::copy(dst, src, bytes, kind, stream) } -> std::same_as<void>;
};

/// `void synchronize(int device)`: waits until all work of a device is done.
template <class Runtime>
concept HasSynchronize = requires(int device) {
  { Runtime::synchronize(device) } -> std::same_as<void>;
};

/// `static constexpr bool host_accessible = true`, which a Runtime may declare: the host reads and
/// writes the memory of `allocate` at the same addresses as its own. Operators that fall back to
/// the CPU then copy nothing; before the host touches the memory, it waits for the current stream,
/// with `synchronize` where there are no streams.
template <class Runtime>
constexpr bool host_accessible() {
  if constexpr (requires { Runtime::host_accessible; }) {
    static_assert(std::same_as<decltype(Runtime::host_accessible), const bool>,
                  "host_accessible must be: static constexpr bool host_accessible");
    return Runtime::host_accessible;
  } else {
    return false;
  }
}

// Functions that a Runtime may have. Those of a group unlock a feature together; without them the
// feature raises a NotImplementedError that names the missing function. A function that is there
// with another signature does not compile.

/// `backendkit::StreamHandle create_stream(int device, int priority)`: a new stream of a device. A
/// lower number, from -3 to 3, is a higher priority, 0 the usual one; the driver takes the nearest
/// that it has. Never null. Streams live as long as the process.
template <class Runtime>
concept HasCreateStream = requires(int device, int priority) {
  { Runtime::create_stream(device, priority) } -> std::same_as<StreamHandle>;
};

/// `void synchronize_stream(backendkit::StreamHandle stream, int device)`: waits until the work of
/// a stream is done, the default one's too.
template <class Runtime>
concept HasSynchronizeStream = requires(StreamHandle stream, int device) {
  { Runtime::synchronize_stream(stream, device) } -> std::same_as<void>;
};

/// `bool query_stream(backendkit::StreamHandle stream, int device)`: whether the work of a stream
/// is done.
template <class Runtime>
concept HasQueryStream = requires(StreamHandle stream, int device) {
  { Runtime::query_stream(stream, device) } -> std::same_as<bool>;
};

/// Streams: `torch.Stream`, and work that goes on after the call that asked for it has returned, on
/// any stream: the three functions above. `copy` may then return early too; what the host reads or
/// writes is waited for with `synchronize_stream`.
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
/// work queued on the stream, one of the device, from now on starts after the event completes, as
/// it was last recorded. The event may be another device's. Returns at once.
template <class Runtime>
concept HasWaitEvent = requires(StreamHandle stream, EventHandle event, int device) {
  { Runtime::wait_event(stream, event, device) } -> std::same_as<void>;
};

/// `bool query_event(backendkit::EventHandle event, int device)`: whether an event is done.
template <class Runtime>
concept HasQueryEvent = requires(EventHandle event, int device) {
  { Runtime::query_event(event, device) } -> std::same_as<bool>;
};

/// `void synchronize_event(backendkit::EventHandle event, int device)`: waits until an event is
/// done.
template <class Runtime>
concept HasSynchronizeEvent = requires(EventHandle event, int device) {
  { Runtime::synchronize_event(event, device) } -> std::same_as<void>;
};

/// Events: `torch.Event`, `wait_stream`, and memory that several streams use: the six functions
/// above.
template <class Runtime>
concept HasEvents =
    HasCreateEvent<Runtime> && HasDestroyEvent<Runtime> && HasRecordEvent<Runtime> &&
    HasWaitEvent<Runtime> && HasQueryEvent<Runtime> && HasSynchronizeEvent<Runtime>;

/// `double elapsed_ms(backendkit::EventHandle start, backendkit::EventHandle end, int device)`:
/// milliseconds between two events with timing, both done. Unlocks `torch.Event.elapsed_time`.
template <class Runtime>
concept HasElapsedMs = requires(EventHandle start, EventHandle end, int device) {
  { Runtime::elapsed_ms(start, end, device) } -> std::same_as<double>;
};

/// `backendkit::MemoryInfo memory_info(int device)`: what is free and what there is. Unlocks
/// `mem_get_info`, and the figures in the error of a device that is out of memory.
template <class Runtime>
concept HasMemoryInfo = requires(int device) {
  { Runtime::memory_info(device) } -> std::same_as<MemoryInfo>;
};

/// `void* allocate_host(std::size_t bytes)`: memory of the host, aligned for any number, that
/// `copy` works on while the host goes on; null when there is not enough.
template <class Runtime>
concept HasAllocateHost = requires(std::size_t bytes) {
  { Runtime::allocate_host(bytes) } -> std::same_as<void*>;
};

/// `void deallocate_host(void* pointer, std::size_t bytes)`: gives back what `allocate_host` gave
/// for as many bytes. The work that used it is done. Does not throw.
template <class Runtime>
concept HasDeallocateHost = requires(void* pointer, std::size_t bytes) {
  { Runtime::deallocate_host(pointer, bytes) } -> std::same_as<void>;
};

/// `bool is_host_pointer(const void* pointer)`: whether a pointer is one into memory of
/// `allocate_host`, or other memory that the driver knows as such.
template <class Runtime>
concept HasIsHostPointer = requires(const void* pointer) {
  { Runtime::is_host_pointer(pointer) } -> std::same_as<bool>;
};

/// Pinned memory: `pin_memory`, and copies with `non_blocking=True` that the host does not wait
/// for: the three functions above.
template <class Runtime>
concept HasPinnedMemory =
    HasAllocateHost<Runtime> && HasDeallocateHost<Runtime> && HasIsHostPointer<Runtime>;

/// `bool can_access_peer(int device, int peer)`: whether `copy_peer` copies from a device to
/// another one.
template <class Runtime>
concept HasCanAccessPeer = requires(int device, int peer) {
  { Runtime::can_access_peer(device, peer) } -> std::same_as<bool>;
};

/// `void copy_peer(void* dst, int dst_device, const void* src, int src_device, std::size_t bytes,
/// backendkit::StreamHandle stream)`: copies from a device to another one, in order with the work
/// of the stream, which is one of `src_device`, the current device. The copy is done when it
/// returns, unless the Runtime has streams.
template <class Runtime>
concept HasCopyPeer = requires(void* dst, int dst_device, const void* src, int src_device,
                               std::size_t bytes, StreamHandle stream) {
  { Runtime::copy_peer(dst, dst_device, src, src_device, bytes, stream) } -> std::same_as<void>;
};

/// Copies between devices that do not go through the host: the two functions above.
template <class Runtime>
concept HasPeers = HasCanAccessPeer<Runtime> && HasCopyPeer<Runtime>;

/// `backendkit::DeviceProperties properties(int device)`: called once for each device in a process.
/// Unlocks `get_device_properties`, `get_device_name` and `get_device_capability` of `torch.foo`.
template <class Runtime>
concept HasProperties = requires(int device) {
  { Runtime::properties(device) } -> std::same_as<DeviceProperties>;
};

/// `void save_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata)`: adds what
/// the backend keeps with a tensor of the device, which is being saved or pickled.
template <class Runtime>
concept HasSaveMetadata = requires(const at::Tensor& tensor, TensorMetadata& metadata) {
  { Runtime::save_metadata(tensor, metadata) } -> std::same_as<void>;
};

/// `void load_metadata(const at::Tensor& tensor, backendkit::TensorMetadata& metadata)`: keeps with
/// a tensor what `save_metadata` said of the one that it was saved from, if there was anything.
template <class Runtime>
concept HasLoadMetadata = requires(const at::Tensor& tensor, TensorMetadata& metadata) {
  { Runtime::load_metadata(tensor, metadata) } -> std::same_as<void>;
};

/// Metadata: what a backend keeps with a tensor, as its `c10::BackendMeta`, is saved with it: the
/// two functions above.
template <class Runtime>
concept HasMetadata = HasSaveMetadata<Runtime> && HasLoadMetadata<Runtime>;

// Whether a Runtime has a function of that name, whatever its signature.
#define BACKENDKIT_RUNTIME_HAS(function) (requires { &Runtime::function; })

/// Fails to compile, with the signature that is expected, for a Runtime with a function of another
/// one, and for a group that is not whole.
template <class Runtime>
constexpr bool check_optional_functions() {
#define BACKENDKIT_CHECK_OPTIONAL(concept_, function, signature)        \
  static_assert(!BACKENDKIT_RUNTIME_HAS(function) || concept_<Runtime>, \
                "Runtime::" #function " must be: static " signature)
  BACKENDKIT_CHECK_OPTIONAL(HasCreateStream, create_stream,
                            "backendkit::StreamHandle create_stream(int device, int priority)");
  BACKENDKIT_CHECK_OPTIONAL(HasSynchronizeStream, synchronize_stream,
                            "void synchronize_stream(backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasQueryStream, query_stream,
                            "bool query_stream(backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasCreateEvent, create_event,
                            "backendkit::EventHandle create_event(int device, bool timing)");
  BACKENDKIT_CHECK_OPTIONAL(HasDestroyEvent, destroy_event,
                            "void destroy_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasRecordEvent, record_event,
                            "void record_event(backendkit::EventHandle event, "
                            "backendkit::StreamHandle stream, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasWaitEvent, wait_event,
                            "void wait_event(backendkit::StreamHandle stream, "
                            "backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasQueryEvent, query_event,
                            "bool query_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasSynchronizeEvent, synchronize_event,
                            "void synchronize_event(backendkit::EventHandle event, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasElapsedMs, elapsed_ms,
                            "double elapsed_ms(backendkit::EventHandle start, "
                            "backendkit::EventHandle end, int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasMemoryInfo, memory_info,
                            "backendkit::MemoryInfo memory_info(int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasAllocateHost, allocate_host,
                            "void* allocate_host(std::size_t bytes)");
  BACKENDKIT_CHECK_OPTIONAL(HasDeallocateHost, deallocate_host,
                            "void deallocate_host(void* pointer, std::size_t bytes)");
  BACKENDKIT_CHECK_OPTIONAL(HasIsHostPointer, is_host_pointer,
                            "bool is_host_pointer(const void* pointer)");
  BACKENDKIT_CHECK_OPTIONAL(HasCanAccessPeer, can_access_peer,
                            "bool can_access_peer(int device, int peer)");
  BACKENDKIT_CHECK_OPTIONAL(HasCopyPeer, copy_peer,
                            "void copy_peer(void* dst, int dst_device, const void* src, "
                            "int src_device, std::size_t bytes, backendkit::StreamHandle stream)");
  BACKENDKIT_CHECK_OPTIONAL(HasProperties, properties,
                            "backendkit::DeviceProperties properties(int device)");
  BACKENDKIT_CHECK_OPTIONAL(HasSaveMetadata, save_metadata,
                            "void save_metadata(const at::Tensor& tensor, "
                            "backendkit::TensorMetadata& metadata)");
  BACKENDKIT_CHECK_OPTIONAL(HasLoadMetadata, load_metadata,
                            "void load_metadata(const at::Tensor& tensor, "
                            "backendkit::TensorMetadata& metadata)");
#undef BACKENDKIT_CHECK_OPTIONAL
  constexpr bool any_stream =
      HasCreateStream<Runtime> || HasSynchronizeStream<Runtime> || HasQueryStream<Runtime>;
  static_assert(!any_stream || HasStreams<Runtime>,
                "a Runtime with streams has create_stream, synchronize_stream and query_stream");
  constexpr bool any_event = HasCreateEvent<Runtime> || HasDestroyEvent<Runtime> ||
                             HasRecordEvent<Runtime> || HasWaitEvent<Runtime> ||
                             HasQueryEvent<Runtime> || HasSynchronizeEvent<Runtime>;
  static_assert(!any_event || HasEvents<Runtime>,
                "a Runtime with events has create_event, destroy_event, record_event, wait_event, "
                "query_event and synchronize_event");
  constexpr bool any_pinned =
      HasAllocateHost<Runtime> || HasDeallocateHost<Runtime> || HasIsHostPointer<Runtime>;
  static_assert(!any_pinned || HasPinnedMemory<Runtime>,
                "a Runtime with pinned memory has allocate_host, deallocate_host and "
                "is_host_pointer");
  static_assert(HasCanAccessPeer<Runtime> == HasCopyPeer<Runtime>,
                "a Runtime with peer copies has can_access_peer and copy_peer");
  static_assert(HasSaveMetadata<Runtime> == HasLoadMetadata<Runtime>,
                "a Runtime with metadata has save_metadata and load_metadata");
  static_assert(!HasElapsedMs<Runtime> || HasEvents<Runtime>,
                "a Runtime with elapsed_ms has events: create_event and the others");
  return true;
}

#undef BACKENDKIT_RUNTIME_HAS

/// Fails to compile, with the signature that is expected, for a Runtime without a required
/// function.
template <class Runtime>
constexpr bool check_runtime() {
  static_assert(HasDeviceCount<Runtime>, "Runtime needs: static int device_count()");
  static_assert(HasCurrentDevice<Runtime>, "Runtime needs: static int current_device()");
  static_assert(HasSetDevice<Runtime>, "Runtime needs: static void set_device(int device)");
  static_assert(HasAllocate<Runtime>,
                "Runtime needs: static void* allocate(std::size_t bytes, int device)");
  static_assert(
      HasDeallocate<Runtime>,
      "Runtime needs: static void deallocate(void* pointer, std::size_t bytes, int device)");
  static_assert(HasCopy<Runtime>,
                "Runtime needs: static void copy(void* dst, const void* src, std::size_t bytes, "
                "backendkit::CopyKind kind, backendkit::StreamHandle stream)");
  static_assert(HasSynchronize<Runtime>, "Runtime needs: static void synchronize(int device)");
  return check_optional_functions<Runtime>();
}

}  // namespace backendkit
