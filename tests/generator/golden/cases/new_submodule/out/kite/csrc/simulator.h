#pragma once

#include <cstddef>
#include <functional>

#include <backendkit/runtime.h>

/// Simulated devices: their memory is the host's, their streams are threads. runtime.cpp
/// calls these functions where it will call your driver; this file and simulator.cpp go then.
///
/// Variables of the environment, read once:
///   KITE_SIMULATOR_DEVICES devices of this machine, 0 to kDevices, else kDevices
///   KITE_SIMULATOR_MEMORY  bytes of each device, else 16 GiB
///   KITE_SIMULATOR_DELAY   microseconds by which work begins late at most, at random, else 0:
/// with a delay of 200 a missing wait shows soon.
namespace kite::simulator {

constexpr int kDevices = 2;
int device_count();

/// Whether the host may use a device's addresses as well. If not, as on most devices, it crashes
/// when it does, so that mistakes show here and not on your device.
constexpr bool kUnified = false;

/// Null when the device has no more. The work that used what is deallocated is done.
void* allocate(std::size_t bytes, int device);
void deallocate(void* pointer, std::size_t bytes, int device);
backendkit::MemoryInfo memory_info(int device);

/// Where work of a device finds what lies at one of its addresses. The null pointer stays null;
/// throws std::out_of_range for bytes that the device does not have.
void* inside(const void* address, std::size_t bytes, int device);

/// The same for a kernel, and any device.
template <class T>
T* inside(T* address) {
  return static_cast<T*>(inside(address, 1, -1));
}

/// Memory of the host that a device knows.
void* allocate_host(std::size_t bytes);
void deallocate_host(void* pointer);
bool is_host_pointer(const void* pointer);

/// Work that is done in order, by a thread that begins with the first. Null is a device's default
/// stream. Streams are never destroyed: their threads run until the process ends.
class Stream;
Stream* create_stream(int device);
Stream& stream_of(void* handle, int device);
void add(Stream& stream, std::function<void()> task);
void wait(Stream& stream);
bool idle(Stream& stream);
void wait_for_all(int device);

/// A point in the work of a stream, and the time at which the stream reaches it.
class Event;
Event* create_event();
void destroy(Event* event);
void record(Event& event, Stream& stream);
void wait(Stream& stream, Event& event);
void wait(Event& event);
bool done(Event& event);
double milliseconds(Event& start, Event& end);

}  // namespace kite::simulator
