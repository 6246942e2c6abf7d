# SPDX-License-Identifier: Apache-2.0
"""Faults of what a device does: order, streams, memory, bytes. What is wrong only when the Runtime
fails is noticed by tests/runtime/faults."""

from fault import Fault

# Synchronization.

KEPT = "test_memory.py::test_memory_that_another_stream_uses_is_kept"
WAITS = "test_streams.py::test_wait_stream"

SYNCHRONIZATION = [
    Fault(
        "the host does not wait for what it reads",
        "include/backendkit/copy/transfers.h",
        "Streams<Runtime>::synchronize(device, stream);",
        "static_cast<void>(stream);",
        ("test_stream_memory.py::test_what_the_host_reads_is_there[cpu]",),
    ),
    Fault(
        "only copies to the host are waited for",
        "include/backendkit/copy/transfers.h",
        "host != nullptr",
        "host != nullptr && kind == CopyKind::kDeviceToHost",
        ("test_stream_memory.py::test_memory_of_the_host_may_change_after_a_copy[other-False]",),
    ),
    Fault(
        "a new tensor of the host is waited for",
        "include/backendkit/tensors.h",
        "(HasPinnedMemory<Runtime> || !to_host)",
        "!to_host",
        ("test_pinned.py::test_the_host_does_not_wait_for_a_new_tensor_of_its_own",),
    ),
    Fault(
        "what other threads write between a tensor's elements is lost",
        "include/backendkit/copy/transfers.h",
        "kind != CopyKind::kDeviceToHost",
        "false",
        ("test_copies.py::test_threads_that_write_few_and_many_elements",),
    ),
    Fault(
        "copies do not wait for a thread that writes back what others may write",
        "include/backendkit/memory/fair_shared_mutex.h",
        "exclusive_ = true;",
        "exclusive_ = false;",
        ("test_copies.py::test_threads_that_write_few_and_many_elements",),
    ),
    Fault(
        "a thread's backward waits for that of another thread",
        "torch_foo/_autograd.py",
        "torch.autograd.set_multithreading_enabled(False)",
        "torch.autograd.set_multithreading_enabled(True)",
        (
            "test_training_threads.py::test_a_backward_does_not_wait_for_that_of_another_thread[device]",
        ),
    ),
    Fault(
        "a backward keeps the threads of the devices",
        "torch_foo/_autograd.py",
        "self._threads_of_devices.release()",
        "None",
        ("test_training_threads.py::test_of_one_thread_pytorch_runs_backward_as_ever",),
    ),
    Fault(
        "copies go on the default stream",
        "include/backendkit/copy/transfers.h",
        "current_stream<Runtime>(device)",
        "nullptr",
        ("test_streams.py::test_work_goes_on_after_the_call",),
    ),
    Fault(
        "streams do not wait for events",
        "include/backendkit/device/event.h",
        "Driver<Runtime>::wait_event(stream, of(event).handle, Devices<Runtime>::checked(device));",
        "static_cast<void>(stream);",
        (WAITS, "test_streams.py::test_events_order_streams[wait_event]"),
    ),
    Fault(
        "events are recorded on the default stream",
        "include/backendkit/device/event.h",
        "Driver<Runtime>::record_event(recorded.handle, stream, device);",
        "Driver<Runtime>::record_event(recorded.handle, nullptr, device);",
        (WAITS,),
    ),
    Fault(
        "an event is always done",
        "include/backendkit/device/event.h",
        "Driver<Runtime>::query_event(of(event).handle, of(event).device)",
        "true",
        ("test_streams.py::test_an_event_stands_for_what_was_recorded_last",),
    ),
    Fault(
        "the host does not wait for an event",
        "include/backendkit/device/event.h",
        "Driver<Runtime>::synchronize_event(of(event).handle, of(event).device);",
        "static_cast<void>(event);",
        ("test_streams.py::test_events_order_streams[synchronize]",),
    ),
    Fault(
        "time goes backwards",
        "include/backendkit/device/event.h",
        "Driver<Runtime>::elapsed_ms(of(start).handle, of(end).handle, of(start).device)",
        "Driver<Runtime>::elapsed_ms(of(end).handle, of(start).handle, of(start).device)",
        ("test_streams.py::test_time_between_events",),
    ),
    Fault(
        "a stream is never waited for",
        "include/backendkit/stream.h",
        "Driver<Runtime>::synchronize_stream(stream, device);",
        "static_cast<void>(stream);",
        ("test_streams.py::test_work_goes_on_after_the_call",),
    ),
    Fault(
        "the driver synchronizes the default stream alone",
        "csrc/simulator.cpp",
        "for (Stream* const stream : others) stream->wait();",
        "others.clear();",
        ("test_streams.py::test_a_device_is_synchronized_with_all_its_streams",),
    ),
    Fault(
        "the driver's streams wait for no event",
        "csrc/simulator.cpp",
        "if (time.valid()) stream.add([time] { time.wait(); });",
        "static_cast<void>(time);",
        (WAITS,),
    ),
    Fault(
        "a copy to another device does not wait for that device's stream",
        "include/backendkit/copy/transfers.h",
        "let_wait(from, to);",
        "static_cast<void>(to);",
        ("test_devices.py::test_a_copy_waits_for_what_the_target_s_stream_has_to_do",),
    ),
    Fault(
        "another device's stream does not wait for a copy to it",
        "include/backendkit/copy/transfers.h",
        "let_wait(to, from);",
        "static_cast<void>(to);",
        ("test_devices.py::test_the_target_s_stream_waits_for_a_copy",),
    ),
]

# Which device and which stream.

STATE = [
    Fault(
        "a device that was set is not the current one",
        "include/backendkit/device/device.h",
        "if (index != before || count() == 0) set(index);",
        "static_cast<void>(index);",
        ("test_tensors.py::test_a_tensor_is_made_on_its_device_whatever_is_current",),
    ),
    Fault(
        "the device before is not the current one again",
        "include/backendkit/guard.h",
        "Driver<Runtime>::set_device(device.index());",
        "static_cast<void>(device);",
        ("test_tensors.py::test_a_tensor_is_made_on_its_device_whatever_is_current",),
    ),
    Fault(
        "the index of a device is one too high",
        "include/backendkit/device/device.h",
        "index >= 0 && index < known",
        "index >= 0 && index <= known",
        ("test_tensors.py::test_an_index_out_of_range_is_an_error[0]",),
    ),
    Fault(
        "copies are the first device's",
        "include/backendkit/copy/transfers.h",
        "c10::Device(kDeviceType, device)",
        "c10::Device(kDeviceType, 0)",
        ("test_stream_memory.py::test_a_copy_between_devices_waits_for_both",),
    ),
    Fault(
        "one current stream for all devices",
        "include/backendkit/stream.h",
        "if (device >= 0) current_[static_cast<std::size_t>(device)] = id;",
        "for (c10::StreamId& one : current_) one = id;",
        ("test_streams.py::test_a_stream_is_current_for_its_device_only",),
    ),
    Fault(
        "a pool gives out one stream",
        "include/backendkit/stream.h",
        "pools.turns[level] = (pools.turns[level] + 1) % kPoolSize;",
        "pools.turns[level] = 0;",
        ("test_streams.py::test_a_pool_of_32_streams_is_given_out_in_turn",),
    ),
    Fault(
        "priorities have no pools",
        "include/backendkit/stream.h",
        "static_cast<std::size_t>(wanted - kHighestPriority)",
        "std::size_t{0}",
        ("test_streams.py::test_each_priority_has_its_pool",),
    ),
    Fault(
        "the fallback takes what stayed on the CPU",
        "include/backendkit/fallback.h",
        "!one.is_cpu()",
        "true",
        ("test_fallback.py::test_a_tensor_that_stayed_on_the_cpu_is_an_error",),
    ),
    Fault(
        "a CPU's operator is work of the device",
        "include/backendkit/profiler/device_trace.h",
        "calls.push_back({this, id, nullptr});",
        "calls.push_back({this, id, event(0)});",
        ("test_profiler.py::TestTrace::test_work_of_the_cpu_is_none",),
    ),
    Fault(
        "a fork is not refused",
        "include/backendkit/device/device.h",
        "!forked_",
        "true",
        ("test_streams.py::test_a_child_of_a_process_with_streams",),
        hangs=True,
    ),
    Fault(
        "a device's context does not restore",
        "torch_foo/_device.py",
        "before >= 0",
        "False",
        ("test_device.py::test_the_device_context_restores",),
    ),
    Fault(
        "a stream's context does not restore",
        "torch_foo/_streams.py",
        "self._before.pop()",
        "(_device.device(-1), self._before.pop()[1], 1)",
        ("test_stream_module.py::test_the_current_stream",),
    ),
]

# Memory.

MEMORY = [
    Fault(
        "freed blocks are lost",
        "include/backendkit/memory/caching_allocator.h",
        "if (block->events == 0) put(block);",
        "static_cast<void>(block);",
        ("test_memory.py::test_freed_memory_is_given_to_the_next_tensor",),
    ),
    Fault(
        "blocks that a stream used are lost",
        "include/backendkit/memory/caching_allocator.h",
        "if (--block->events == 0) put(block);",
        "static_cast<void>(block);",
        (KEPT,),
    ),
    Fault(
        "no stream is recorded",
        "include/backendkit/memory/memory_block.h",
        "if (std::find(users.begin(), users.end(), other) == users.end()) users.push_back(other);",
        "users.clear();",
        (KEPT,),
    ),
    Fault(
        "the event of another stream is waited for",
        "include/backendkit/memory/caching_allocator.h",
        "driver_.record(user)",
        "driver_.record(block->stream)",
        (KEPT,),
    ),
    Fault(
        "memory that a stream uses is given out",
        "include/backendkit/allocator.h",
        "Driver<Runtime>::query_event(event, device_)",
        "true",
        (KEPT,),
    ),
    Fault(
        "free blocks of all streams are one list",
        "include/backendkit/memory/caching_allocator.h",
        "found == blocks.end() || (*found)->stream != stream",
        "found == blocks.end()",
        ("test_memory.py::test_blocks_belong_to_their_stream",),
    ),
    Fault(
        "all blocks are the default stream's",
        "include/backendkit/allocator.h",
        "cache(device).allocate(bytes, memory)",
        "cache(device).allocate(bytes, 0)",
        ("test_memory.py::test_blocks_belong_to_their_stream",),
    ),
    Fault(
        "blocks overlap",
        "include/backendkit/memory/memory_block.h",
        "other->pointer = pointer + to",
        "other->pointer = pointer + to - 512",
        ("test_memory.py::test_two_tensors_never_share_memory",),
    ),
    Fault(
        "neighbours stay apart",
        "include/backendkit/memory/caching_allocator.h",
        "block->after != nullptr && block->after->free()",
        "false",
        ("test_memory.py::test_neighbours_that_are_free_are_one",),
    ),
    Fault(
        "out of memory without another try",
        "include/backendkit/memory/caching_allocator.h",
        "++statistics_.num_alloc_retries;\n      free_cache();",
        "++statistics_.num_alloc_retries;",
        ("test_memory.py::test_a_fraction_of_the_memory",),
    ),
    Fault(
        "the fraction is ignored",
        "include/backendkit/memory/caching_allocator.h",
        "bytes > limit_ || reserved > limit_ - bytes",
        "reserved == 1",
        ("test_memory.py::test_a_fraction_of_the_memory",),
    ),
    Fault(
        "peaks go down again",
        "include/backendkit/memory/memory_statistics.h",
        "std::max(peak, current)",
        "current",
        ("test_memory.py::test_what_tensors_have_is_counted",),
    ),
    Fault(
        "what was asked for is counted rounded",
        "include/backendkit/memory/caching_allocator.h",
        "statistics_.requested_bytes.add(small, bytes);",
        "statistics_.requested_bytes.add(small, size);",
        ("test_memory.py::test_what_tensors_have_is_counted",),
    ),
    Fault(
        "the history has what was asked for rounded",
        "include/backendkit/memory/caching_allocator.h",
        "history_.add(MemoryAction::kAlloc, block->pointer, bytes, stream);",
        "history_.add(MemoryAction::kAlloc, block->pointer, block->bytes, stream);",
        ("test_memory.py::test_pytorch_s_viewer_reads_a_snapshot",),
    ),
    Fault(
        "the driver's memory leaks",
        "csrc/simulator.cpp",
        "where.used -= bytes;",
        "static_cast<void>(bytes);",
        ("test_memory.py::test_the_driver_s_memory",),
    ),
    Fault(
        "pinned memory is used again too early",
        "include/backendkit/pinned_allocator.h",
        "cache().record_stream(block, PinnedMemory<Runtime>::user(device, stream));",
        "static_cast<void>(stream);",
        ("test_pinned.py::test_memory_that_a_copy_uses_is_kept[device]",),
    ),
    Fault(
        "pinned memory waits for the first device alone",
        "include/backendkit/pinned_allocator.h",
        "(static_cast<std::int64_t>(device) + 1) * kDevice + stream",
        "(static_cast<std::int64_t>(device * 0) + 1) * kDevice + stream",
        ("test_pinned.py::test_memory_that_a_copy_uses_is_kept[other]",),
    ),
    Fault(
        "the host's memory is not kept for a copy that goes on",
        "include/backendkit/copy/copy.h",
        "!non_blocking || !record_pinned_use(src, dst)",
        "!non_blocking",
        (
            "test_stream_memory.py::test_memory_of_the_host_may_change_after_a_copy[other-True]",
            "test_pinned.py::test_memory_that_a_copy_uses_is_kept[device]",
        ),
    ),
]

# Graphs.

GRAPHS = [
    Fault(
        "a graph lacks what could not be recorded",
        "include/backendkit/graph.h",
        "failure.empty()",
        "true",
        ("test_graphs.py::test_an_error_that_the_program_catches_is_raised_at_the_end",),
    ),
    Fault(
        "a graph's memory goes to others",
        "include/backendkit/graph.h",
        "Allocator<Runtime>::cache(device).keep(memory)",
        "static_cast<void>(memory)",
        ("test_graphs.py::test_the_memory_goes_back_with_the_graph",),
    ),
    Fault(
        "a graph's memory stays",
        "include/backendkit/graph.h",
        "GraphPools<Runtime>::release(device, *std::exchange(memory, std::nullopt))",
        "static_cast<void>(memory)",
        ("test_graphs.py::test_the_memory_goes_back_with_the_graph",),
    ),
    Fault(
        "graphs that go while another is recorded are lost",
        "include/backendkit/graph.h",
        "postponed().push_back(std::exchange(*this, {}));",
        "*this = {};",
        ("test_graphs.py::test_a_graph_goes_while_another_is_recorded[reset]",),
    ),
    Fault(
        "a stream that records gets the event of memory",
        "include/backendkit/allocator.h",
        "Captures::recording(device, stream)",
        "false",
        ("test_graphs.py::test_memory_that_a_stream_used_goes_while_it_records[False]",),
    ),
]

# Bytes and bits.

VALUES = [
    Fault(
        "the driver copies a byte less",
        "csrc/runtime.cpp",
        "std::memmove(dst, src, bytes)",
        "std::memmove(dst, src, bytes - 1)",
        ("test_copies.py::test_every_byte_is_copied[64]",),
    ),
    Fault(
        "conjugate views are copied as they lie in memory",
        "include/backendkit/copy/copy.h",
        "a.is_conj() == b.is_conj()",
        "true",
        ("test_copies.py::test_conjugate_and_negative_views[to host-conj]",),
    ),
    Fault(
        "the negative bit is lost",
        "include/backendkit/copy/copy.h",
        "host._set_neg(tensor.is_neg());",
        "static_cast<void>(tensor);",
        ("test_copies.py::test_conjugate_and_negative_views[to host-neg]",),
    ),
    Fault(
        "a copy to another device counts as one within a device",
        "include/backendkit/copy/copy.h",
        "src.device() == dst.device() ? CopyWay::kWithinDevice : CopyWay::kBetweenDevices",
        "CopyWay::kWithinDevice",
        ("test_times.py::test_copies_between_devices_count_once",),
    ),
    Fault(
        "timed work is not waited for",
        "include/backendkit/kernel/timed_work.h",
        "waits_ = waits;",
        "waits_ = false;",
        ("test_times.py::test_timed_copies_wait",),
    ),
    Fault(
        "what lies between elements is overwritten",
        "include/backendkit/copy/element_runs.h",
        "outer_[dense].first == length_",
        "true",
        ("test_copies.py::test_into_a_view_leaves_the_rest_alone[every second-cpu]",),
    ),
    Fault(
        "what lies between many elements is lost",
        "include/backendkit/copy/element_runs.h",
        "copy(whole, there, CopyKind::kDeviceToHost);",
        "static_cast<void>(there);",
        ("test_copies.py::test_quantized_tensors_with_gaps[1000]",),
    ),
    Fault(
        "strides are ignored",
        "include/backendkit/copy/copy.h",
        "src.strides() == dst.strides()",
        "true",
        ("test_copies.py::test_into_a_view_leaves_the_rest_alone[transposed-cpu]",),
    ),
    Fault(
        "what an operator did in place is lost",
        "include/backendkit/fallback/host_memory.h",
        "pair.out.add(first + begin, first + end);",
        "static_cast<void>(begin + end);",
        ("test_training.py::test_in_place_operators",),
    ),
    Fault(
        "the state of random numbers is not restored",
        "include/backendkit/generator.h",
        "state_ = {words[0], words[1]};",
        "state_ = {words[0], 0};",
        ("test_device.py::test_state_of_the_generator",),
    ),
    Fault(
        "a seed does not reach the generator",
        "include/backendkit/generator.h",
        "state_ = {seed, 0};",
        "static_cast<void>(seed);",
        ("test_device.py::test_a_seed_reaches_every_random_operator[randn]",),
    ),
    Fault(
        "what was drawn is drawn again",
        "include/backendkit/generator.h",
        "state_.offset += (increment + 3) / 4 * 4;",
        "static_cast<void>(increment);",
        ("test_device.py::test_a_seed_reaches_every_random_operator[randn]",),
    ),
    Fault(
        "a result is not on the device that is asked for",
        "include/backendkit/fallback.h",
        "asked.value_or(device)",
        "device",
        ("test_nested.py::test_they_go_where_they_are_sent",),
    ),
    Fault(
        "an empty view makes a tensor's memory anew",
        "include/backendkit/fallback/host_memory.h",
        "if (begin < end) pair.needed = std::max(pair.needed, end + pair.begin);",
        "pair.needed = std::max(pair.needed, end + pair.begin);",
        ("test_storages.py::test_an_empty_view_needs_no_memory[in place]",),
    ),
    Fault(
        "the profiler's rows are of the current device",
        "include/backendkit/device/device.h",
        "visit(index);",
        "static_cast<void>(index);",
        ("test_profiler.py::TestTrace::test_work_is_of_the_tensors_device",),
    ),
    Fault(
        "what an operator did to a nested tensor is lost",
        "include/backendkit/fallback/host_tensors.h",
        "each_part(made, [&](const at::Tensor& part) { memory_.note_result(part); });",
        "static_cast<void>(made);",
        ("test_nested.py::test_operators[fill_]",),
    ),
    Fault(
        "running statistics stay on the host",
        "include/backendkit/fallback.h",
        'name == "aten::native_batch_norm" || name == "aten::batch_norm_update_stats"',
        "name.empty()",
        ("test_training.py::test_running_statistics[0.1-BatchNorm1d]",),
    ),
]
