# SPDX-License-Identifier: Apache-2.0
"""Faults that a backend may have, and the device tests that notice each. What is wrong only when
the Runtime fails is noticed by tests/faults.

A fault is a place of the C++ headers, of the starter project's simulator or of the Python package:
`right` is found there exactly once and stands for `faulty` where the fault is chosen. Both are
expressions, or, if `right` ends with a semicolon, statements; in Python expressions.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str  # below include/backendkit, csrc or torch_foo
    right: str
    faulty: str
    tests: tuple[str, ...]  # from tests/device on; each of them has to fail
    hangs: bool = False  # it is noticed by a test that does not end


# Synchronization.

KEPT = "test_memory.py::test_memory_that_another_stream_uses_is_kept"
WAITS = "test_streams.py::test_wait_stream"

SYNCHRONIZATION = [
    Fault(
        "the host does not wait for what it reads",
        "include/backendkit/transfers.h",
        "Streams<Runtime>::synchronize(device, stream);",
        "static_cast<void>(stream);",
        ("test_stream_memory.py::test_what_the_host_reads_is_there[cpu]",),
    ),
    Fault(
        "only copies to the host are waited for",
        "include/backendkit/transfers.h",
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
        "include/backendkit/transfers.h",
        "kind != CopyKind::kDeviceToHost",
        "false",
        ("test_copies.py::test_threads_that_write_few_and_many_elements",),
    ),
    Fault(
        "copies do not wait for a thread that writes back what others may write",
        "include/backendkit/fair_shared_mutex.h",
        "alone_ = true;",
        "alone_ = false;",
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
        "include/backendkit/transfers.h",
        "current_stream<Runtime>(device)",
        "nullptr",
        ("test_streams.py::test_work_goes_on_after_the_call",),
    ),
    Fault(
        "streams do not wait for events",
        "include/backendkit/event.h",
        "Driver<Runtime>::wait_event(stream, of(event).handle, Devices<Runtime>::checked(device));",
        "static_cast<void>(stream);",
        (WAITS, "test_streams.py::test_events_order_streams[wait_event]"),
    ),
    Fault(
        "events are recorded on the default stream",
        "include/backendkit/event.h",
        "Driver<Runtime>::record_event(recorded.handle, stream, device);",
        "Driver<Runtime>::record_event(recorded.handle, nullptr, device);",
        (WAITS,),
    ),
    Fault(
        "an event is always done",
        "include/backendkit/event.h",
        "Driver<Runtime>::query_event(of(event).handle, of(event).device)",
        "true",
        ("test_streams.py::test_an_event_stands_for_what_was_recorded_last",),
    ),
    Fault(
        "the host does not wait for an event",
        "include/backendkit/event.h",
        "Driver<Runtime>::synchronize_event(of(event).handle, of(event).device);",
        "static_cast<void>(event);",
        ("test_streams.py::test_events_order_streams[synchronize]",),
    ),
    Fault(
        "time goes backwards",
        "include/backendkit/event.h",
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
        "include/backendkit/transfers.h",
        "let_wait(from, to);",
        "static_cast<void>(to);",
        ("test_devices.py::test_a_copy_waits_for_what_the_target_s_stream_has_to_do",),
    ),
    Fault(
        "another device's stream does not wait for a copy to it",
        "include/backendkit/transfers.h",
        "let_wait(to, from);",
        "static_cast<void>(to);",
        ("test_devices.py::test_the_target_s_stream_waits_for_a_copy",),
    ),
]

# Which device and which stream.

STATE = [
    Fault(
        "a device that was set is not the current one",
        "include/backendkit/device.h",
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
        "include/backendkit/device.h",
        "index >= 0 && index < known",
        "index >= 0 && index <= known",
        ("test_tensors.py::test_an_index_out_of_range_is_an_error[0]",),
    ),
    Fault(
        "copies are the first device's",
        "include/backendkit/transfers.h",
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
        "include/backendkit/device_trace.h",
        "calls.push_back({this, id, nullptr});",
        "calls.push_back({this, id, event(0)});",
        ("test_profiler.py::TestTrace::test_work_of_the_cpu_is_none",),
    ),
    Fault(
        "a fork is not refused",
        "include/backendkit/device.h",
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
        "include/backendkit/caching_allocator.h",
        "if (block->events == 0) put(block);",
        "static_cast<void>(block);",
        ("test_memory.py::test_freed_memory_is_given_to_the_next_tensor",),
    ),
    Fault(
        "blocks that a stream used are lost",
        "include/backendkit/caching_allocator.h",
        "if (--block->events == 0) put(block);",
        "static_cast<void>(block);",
        (KEPT,),
    ),
    Fault(
        "no stream is recorded",
        "include/backendkit/memory_block.h",
        "if (std::find(users.begin(), users.end(), other) == users.end()) users.push_back(other);",
        "users.clear();",
        (KEPT,),
    ),
    Fault(
        "the event of another stream is waited for",
        "include/backendkit/caching_allocator.h",
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
        "include/backendkit/caching_allocator.h",
        "found == blocks.end() || (*found)->stream != stream",
        "found == blocks.end()",
        ("test_memory.py::test_blocks_belong_to_their_stream",),
    ),
    Fault(
        "all blocks are the default stream's",
        "include/backendkit/allocator.h",
        "cache(device).allocate(bytes, stream)",
        "cache(device).allocate(bytes, 0)",
        ("test_memory.py::test_blocks_belong_to_their_stream",),
    ),
    Fault(
        "blocks overlap",
        "include/backendkit/caching_allocator.h",
        "block->pointer + bytes",
        "block->pointer + bytes - kRound",
        ("test_memory.py::test_two_tensors_never_share_memory",),
    ),
    Fault(
        "neighbours stay apart",
        "include/backendkit/caching_allocator.h",
        "block->after != nullptr && block->after->free()",
        "false",
        ("test_memory.py::test_neighbours_that_are_free_are_one",),
    ),
    Fault(
        "out of memory without another try",
        "include/backendkit/caching_allocator.h",
        "++statistics_.num_alloc_retries;\n      free_cache();",
        "++statistics_.num_alloc_retries;",
        ("test_memory.py::test_a_fraction_of_the_memory",),
    ),
    Fault(
        "the fraction is ignored",
        "include/backendkit/caching_allocator.h",
        "bytes > limit_ || reserved > limit_ - bytes",
        "reserved == 1",
        ("test_memory.py::test_a_fraction_of_the_memory",),
    ),
    Fault(
        "peaks go down again",
        "include/backendkit/memory_statistics.h",
        "std::max(peak, current)",
        "current",
        ("test_memory.py::test_what_tensors_have_is_counted",),
    ),
    Fault(
        "what was asked for is counted rounded",
        "include/backendkit/caching_allocator.h",
        "statistics_.requested_bytes.add(small, bytes);",
        "statistics_.requested_bytes.add(small, size);",
        ("test_memory.py::test_what_tensors_have_is_counted",),
    ),
    Fault(
        "the history has what was asked for rounded",
        "include/backendkit/caching_allocator.h",
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
        "include/backendkit/copy.h",
        "!non_blocking || !keeps_host_memory(src, dst)",
        "!non_blocking",
        (
            "test_stream_memory.py::test_memory_of_the_host_may_change_after_a_copy[other-True]",
            "test_pinned.py::test_memory_that_a_copy_uses_is_kept[device]",
        ),
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
        "include/backendkit/copy.h",
        "a.is_conj() == b.is_conj()",
        "true",
        ("test_copies.py::test_conjugate_and_negative_views[to host-conj]",),
    ),
    Fault(
        "the negative bit is lost",
        "include/backendkit/copy.h",
        "host._set_neg(tensor.is_neg());",
        "static_cast<void>(tensor);",
        ("test_copies.py::test_conjugate_and_negative_views[to host-neg]",),
    ),
    Fault(
        "what lies between elements is overwritten",
        "include/backendkit/strided.h",
        "outer_[dense].first == length_",
        "true",
        ("test_copies.py::test_into_a_view_leaves_the_rest_alone[every second-cpu]",),
    ),
    Fault(
        "what lies between many elements is lost",
        "include/backendkit/strided.h",
        "copy(whole, first, CopyKind::kDeviceToHost);",
        "static_cast<void>(first);",
        ("test_copies.py::test_quantized_tensors_with_gaps[1000]",),
    ),
    Fault(
        "strides are ignored",
        "include/backendkit/copy.h",
        "src.strides() == dst.strides()",
        "true",
        ("test_copies.py::test_into_a_view_leaves_the_rest_alone[transposed-cpu]",),
    ),
    Fault(
        "what an operator did in place is lost",
        "include/backendkit/host_memory.h",
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
        "include/backendkit/host_memory.h",
        "if (begin < end) pair.needed = std::max(pair.needed, end + pair.begin);",
        "pair.needed = std::max(pair.needed, end + pair.begin);",
        ("test_storages.py::test_an_empty_view_needs_no_memory[in place]",),
    ),
    Fault(
        "the profiler's rows are of the current device",
        "include/backendkit/device.h",
        "visit(index);",
        "static_cast<void>(index);",
        ("test_profiler.py::TestTrace::test_work_is_of_the_tensors_device",),
    ),
    Fault(
        "what an operator did to a nested tensor is lost",
        "include/backendkit/host_tensors.h",
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

# Processes and threads.

PROCESSES = [
    Fault(
        "Python does not wait for autograd's threads",
        "torch_foo/_loader.py",
        "self._drain(self._MILLISECONDS)",
        "None",
        ("test_processes.py::test_python_waits_for_autograd_s_threads_before_it_finalizes",),
    ),
    Fault(
        "what waits for autograd's threads passes them by",
        "include/backendkit/autograd_threads.h",
        "pass_nothing_back(device);",
        "static_cast<void>(device);",
        ("test_processes.py::test_what_autograd_s_threads_hold_is_waited_for",),
    ),
    Fault(
        "every process that runs a backward pass has threads for the device",
        "include/backendkit/device.h",
        "threads_.hidden(used_)",
        "false",
        ("test_processes.py::test_a_process_that_uses_only_the_cpu_has_no_threads_for_the_device",),
    ),
    Fault(
        "the device gets no threads after a backward pass on the CPU",
        "include/backendkit/autograd_threads.h",
        "if (!hidden_) return;",
        "return;",
        ("test_processes.py::test_the_device_has_its_threads_whenever_it_is_used_first",),
    ),
]

# What a Runtime throws and returns.

CHECKS = "../faults/check_driver.py::"

DRIVER = [
    Fault(
        "memory that a device still writes is freed when the wait for it fails",
        "include/backendkit/transfers.h",
        "InFlight::keep(device, stream, hosts_);",
        "static_cast<void>(stream);",
        (CHECKS + "test_it_is_there_until_a_wait_succeeds[True-the device]",),
    ),
    Fault(
        "memory that a device still reads may be freed by who resizes it",
        "include/backendkit/in_flight.h",
        "impl->set_resizable(false);",
        "static_cast<void>(impl);",
        (CHECKS + "test_it_keeps_its_size_meanwhile",),
    ),
    Fault(
        "memory in flight is let go when another device has been waited for",
        "include/backendkit/in_flight.h",
        "one.device == device && stream.value_or(one.stream) == one.stream",
        "stream.value_or(one.stream) == one.stream",
        (CHECKS + "test_it_is_there_until_a_wait_succeeds[False-the device]",),
    ),
    Fault(
        "nobody waits for a copy between devices that went on though its call failed",
        "include/backendkit/transfers.h",
        "settle<Runtime>(from, {dst_storage, src_storage});",
        "static_cast<void>(from);",
        (
            CHECKS + "test_memory_of_another_device_is_not_given_out[late-waits]",
            CHECKS + "test_memory_of_another_device_is_not_given_out[and the next event-waits]",
        ),
    ),
    Fault(
        "an error of the driver ends a thread of autograd, and the process",
        "include/backendkit/guard.h",
        '!c10::getThreadName().starts_with("pt_autograd_")',
        "true",
        (CHECKS + "test_backward_on_a_device_that_cannot_be_current",),
    ),
    Fault(
        "devices are counted at every step",
        "include/backendkit/device.h",
        "known >= 0 ? known : ask()",
        "static_cast<void>(known), Driver<Runtime>::device_count()",
        (CHECKS + "test_devices_are_counted_once",),
    ),
    Fault(
        "a child waits for a thread that counts devices in its parent",
        "include/backendkit/device.h",
        "count_.compare_exchange_strong(asking, kUnknown);",
        "static_cast<void>(asking);",
        (CHECKS + "test_a_child_that_is_forked_while_devices_are_counted",),
        hangs=True,
    ),
    Fault(
        "the properties of one device are those of all",
        "include/backendkit/properties.h",
        "all[static_cast<std::size_t>(device)]",
        "all[static_cast<std::size_t>(device * 0)]",
        (CHECKS + "test_properties_are_asked_once_for_each_device",),
    ),
    Fault(
        "an event may be null",
        "include/backendkit/driver.h",
        "event == nullptr",
        "false",
        (CHECKS + "test_no_event",),
    ),
    Fault(
        "the current device may be one that there is not",
        "include/backendkit/driver.h",
        "device < 0 || device >= count",
        "false",
        (CHECKS + "test_a_device_that_there_is_not_is_not_the_current_one",),
    ),
    Fault(
        "two tensors have the memory that a driver gives twice",
        "include/backendkit/driver.h",
        "!memory().add(device, pointer, bytes)",
        "false",
        (CHECKS + "test_memory_that_was_given_before[allocate]",),
    ),
    Fault(
        "a driver's texts reach Python as they are",
        "include/backendkit/utf8.h",
        'length == 0 ? std::string_view("\\xEF\\xBF\\xBD") : text.substr(0, length)',
        "text.substr(0, length == 0 ? 1 : length)",
        (
            CHECKS + "test_a_name_in_no_utf_8",
            CHECKS + "test_what_is_thrown_is_an_error_that_names_the_function[bytes-"
            "RuntimeError-injected into synchronize \\ufffd\\ufffd]",
        ),
    ),
]

# Modules that move.

SAME = "test_module_moves.py::test_parameters_stay_the_same"

MODULES = [
    Fault(
        "a module that moves gets new parameters",
        "include/backendkit/shallow_copy.h",
        "(is_dense(self) && is_dense(from))",
        "false",
        (
            f"{SAME}[cpu to device-to]",
            f"{SAME}[device to cpu-to]",
            "test_module_moves.py::test_an_optimizer_trains_what_moves[Adam-before]",
            "test_set_data.py::test_fully_sharded_data_parallel",
        ),
    ),
    Fault(
        "modes of Python see the question for a parameter",
        "include/backendkit/shallow_copy.h",
        "if (!has_kernel(kOperator)) aten.impl(kOperator, &is_possible);",
        "static_cast<void>(aten);",
        ("test_set_data.py::test_modes_of_python_do_not_see_the_question",),
    ),
    Fault(
        "a sparse tensor takes over a device without the numbers",
        "include/backendkit/shallow_copy.h",
        "is_compressed(self) && self.device() != from.device()",
        "false",
        (
            "test_set_data.py::test_compressed_tensors[sparse_csr-places0]",
            "test_set_data.py::test_compressed_tensors[sparse_csr-places2]",
        ),
    ),
    Fault(
        "a lazy module is not moved by the device's name",
        "torch_foo/_loader.py",
        "getattr(torch.Tensor, _build.DEVICE)",
        "torch.Tensor.cuda",
        ("test_module_moves.py::test_lazy_modules[LazyLinear-by_name]",),
    ),
]

# Programs that use only the CPU.

CPU_PROGRAMS = [
    Fault(
        "a process group by default is one for the device",
        "torch_foo/_defaults.py",
        "str(backend) != c10d.Backend.UNDEFINED or _has_group(c10d)",
        "True",
        ("test_cpu_programs.py::test_a_process_group_by_default_is_that_of_the_cpu",),
    ),
    Fault(
        "a profile of the CPU lists the device's operators",
        "torch_foo/_device.py",
        "device is None and not is_initialized() and device_count() > 0",
        "False",
        ("test_cpu_programs.py::test_a_profile_of_the_cpu_has_nothing_of_the_device",),
    ),
    Fault(
        "modules in parallel are copied to devices",
        "torch_foo/_defaults.py",
        "None if found == _NAME else found",
        "found",
        ("test_cpu_programs.py::test_data_parallel_calls_its_module",),
    ),
    Fault(
        "waiting for the accelerator starts it",
        "include/backendkit/device.h",
        "if (!used()) return;",
        "use();",
        ("test_cpu_programs.py::test_waiting_for_the_accelerator_does_not_start_it",),
    ),
]

# The place that PyTorch has for a backend.

PLACE = [
    Fault(
        "the library does not give the device its name",
        "include/backendkit/claim.h",
        "c10::register_privateuse1_backend(name);",
        "static_cast<void>(name);",
        ("test_library.py::test_it_gives_the_device_its_name",),
    ),
    Fault(
        "a device of another name is not looked for",
        "include/backendkit/claim.h",
        "c10::is_privateuse1_backend_registered() && taken != name",
        "false",
        ("test_library.py::test_it_leaves_pytorch_to_a_device_of_another_name",),
    ),
    Fault(
        "a library that has registered the device is not looked for",
        "include/backendkit/claim.h",
        "at::isPrivateUse1HooksRegistered() || c10::impl::hasDeviceGuardImpl(kDeviceType)",
        "false",
        ("test_library.py::test_a_second_copy_registers_nothing",),
    ),
    Fault(
        "the package does not ask whether its library registered the device",
        "torch_foo/_loader.py",
        "why is not None",
        "False",
        ("test_library.py::test_the_package_says_that_another_copy_is_open",),
    ),
]

FAULTS = [
    *SYNCHRONIZATION,
    *STATE,
    *MEMORY,
    *VALUES,
    *PROCESSES,
    *DRIVER,
    *MODULES,
    *CPU_PROGRAMS,
    *PLACE,
]
