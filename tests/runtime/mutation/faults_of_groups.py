# SPDX-License-Identifier: Apache-2.0
"""Faults of process groups: the order of streams and ranks, chunks, reductions, works, errors."""

from fault import Fault

HERE = "include/backendkit/distributed/"
COLLECTIVES = "test_collectives.py::"

# Streams, and the memory of what is sent.

ORDER = [
    Fault(
        "a batch is over when its last message is",
        HERE + "staged_group.h",
        "ends.push_back(end);",
        "ends = {end};",
        (COLLECTIVES + "test_messages[batch_whose_first_message_comes_last]",),
    ),
    Fault(
        "what a program computes is sent before it is computed",
        HERE + "staged_call.h",
        "now.block(streams.to_host);",
        "static_cast<void>(now);",
        (COLLECTIVES + "test_side_streams[result_of_a_side_stream-1048577]",),
    ),
    Fault(
        "results overwrite what a program still reads",
        HERE + "staged_call.h",
        "now.block(streams.from_host);",
        "static_cast<void>(now);",
        (COLLECTIVES + "test_side_streams[results_overwrite_what_was_read-1048577]",),
    ),
    Fault(
        "the stream does not wait for the results",
        HERE + "staged_work.h",
        "end.point.block(device_guard().getStream(end.stream.device()));",
        "static_cast<void>(end);",
        (COLLECTIVES + "test_side_streams[wait_under_another_stream-10]",),
    ),
    Fault(
        "a barrier is for the current device only",
        HERE + "staged_backend.h",
        "group_->devices()",
        "std::set<c10::DeviceIndex>{}",
        (COLLECTIVES + "test_barrier_waits_for_another_device",),
    ),
    Fault(
        "another time-out is not that of messages",
        HERE + "staged_group.h",
        "posted->wait(group->timeout_);",
        "posted->wait();",
        ("test_failed_works.py::test_another_timeout[irecv]",),
        hangs=True,
    ),
    Fault(
        "the host does not wait for what it sends",
        HERE + "staged_call.h",
        "step.ready.wait();",
        "static_cast<void>(step);",
        (COLLECTIVES + "test_40_megabytes",),
    ),
    Fault(
        "results go to the device before they are there",
        HERE + "staged_call.h",
        "if (last.work) last.work->wait();",
        "static_cast<void>(last.work);",
        (COLLECTIVES + "test_40_megabytes",),
    ),
    Fault(
        "only the last chunk comes back",
        HERE + "staged_call.h",
        "      end_last();\n      last = std::move(begun);",
        "      last = std::move(begun);",
        (COLLECTIVES + "test_40_megabytes",),
    ),
    Fault(
        "a message is sent before it is on the host",
        HERE + "staged_call.h",
        "steps_.front().ready.wait();",
        "static_cast<void>(0);",
        (COLLECTIVES + "test_side_streams[message_of_a_side_stream-1048577]",),
    ),
    Fault(
        "a work without gaps has no end on its stream",
        HERE + "staged_buffer.h",
        "is_dense && is_shared_",
        "is_dense",
        (COLLECTIVES + "test_side_streams[wait_under_another_stream-10]",),
    ),
    Fault(
        "a barrier does not wait for the device",
        HERE + "staged_steps.h",
        "for (const StreamPoint& one : now) one.wait();",
        "static_cast<void>(now);",
        (COLLECTIVES + "test_barrier_waits_for_the_device",),
    ),
    Fault(
        "the memory of results is given away before they are there",
        HERE + "staged_buffer.h",
        "device_guard().recordDataPtrOnStream(tensor_.storage().data_ptr(), stream);\n"
        "    device_guard().recordDataPtrOnStream(dense_.storage().data_ptr(), stream);",
        "static_cast<void>(stream);",
        (COLLECTIVES + "test_side_streams[results_freed_before_the_end-10]",),
    ),
]

# Bytes: where they come from and where they go.

BYTES = [
    Fault(
        "every chunk of a reduction is the first one",
        HERE + "staged_steps.h",
        "use(begin, std::min(begin + most, bytes));",
        "use(0, std::min(most, bytes));",
        (COLLECTIVES + "test_40_megabytes",),
    ),
    Fault(
        "every chunk of a rank's part is the first one",
        HERE + "staged_steps.h",
        "for (Range& place : places) "
        "place = {place.buffer, place.begin + begin, place.begin + end};",
        "for (Range& place : places) "
        "place = {place.buffer, place.begin, place.begin + end - begin};",
        (
            COLLECTIVES + "test_data_of_megabytes[all_gather_into_tensor]",
            COLLECTIVES + "test_reductions_of_megabytes[reduce_scatter_tensor-SUM]",
        ),
    ),
    Fault(
        "all that is gathered goes to the first output",
        HERE + "staged_steps.h",
        "begin += one.numel();",
        "begin += 0;",
        (COLLECTIVES + "test_data_of_every_dtype[all_gather-float32]",),
    ),
    Fault(
        "every rank sends parts of one size",
        HERE + "arguments.h",
        "bytes / rows * one",
        "bytes / size_",
        (COLLECTIVES + "test_uneven_all_to_all_single[float32-False]",),
    ),
    Fault(
        "the first rank broadcasts",
        HERE + "staged_steps.h",
        "options.rootRank = from;",
        "options.rootRank = 0;",
        (COLLECTIVES + "test_data_of_every_dtype[broadcast-float32]",),
    ),
    Fault(
        "a result does not come back to a tensor with gaps",
        HERE + "staged_buffer.h",
        "tensor_.copy_(dense_);",
        "static_cast<void>(stream);",
        (COLLECTIVES + "test_tensors_that_are_no_whole_memory[all_reduce-strided]",),
    ),
    Fault(
        "a tensor with gaps is sent without its values",
        HERE + "staged_buffer.h",
        "tensor_.contiguous()",
        "at::empty(tensor_.sizes(), tensor_.options())",
        (COLLECTIVES + "test_tensors_that_are_no_whole_memory[broadcast-strided]",),
    ),
    Fault(
        "sums of sparse tensors stay on the host",
        HERE + "staged_sparse.h",
        "tensor.copy_(sum[0]);",
        "static_cast<void>(sum);",
        (COLLECTIVES + "test_sums_of_sparse_tensors[float32-False]",),
    ),
]

# Arithmetic.

ARITHMETIC = [
    Fault(
        "averages are not divided",
        HERE + "reduction.h",
        "values.div_(ranks_);",
        "static_cast<void>(values);",
        (COLLECTIVES + "test_all_reduce[AVG-float32]",),
    ),
    Fault(
        "scaled sums are not scaled",
        HERE + "reduction.h",
        "values.mul_(at::Scalar(*factor_));",
        "static_cast<void>(values);",
        (COLLECTIVES + "test_all_reduce[PREMUL_SUM-float32]",),
    ),
    Fault(
        "a part is the first rank's alone",
        HERE + "staged_steps.h",
        "reduction.combine(sum, part(rank));",
        "static_cast<void>(rank);",
        (COLLECTIVES + "test_sums_of_every_dtype[reduce_scatter_tensor-float32]",),
    ),
    Fault(
        "the variance of all ranks leaves out how far their means lie apart",
        "include/backendkit/sync_batch_norm.h",
        "variances + (mean - all_mean).square()",
        "variances",
        ("test_parallel.py::test_sync_batch_norm[1]",),
    ),
]

# Works, threads and errors.

WORKS = [
    Fault(
        "messages wait for each other",
        HERE + "lane.h",
        "state_->one_thread ? state_->threads > 0 : state_->idle > state_->tasks.size()",
        "state_->threads > 0",
        (COLLECTIVES + "test_messages[answer_before_an_older_message]",),
        hangs=True,
    ),
    Fault(
        "callbacks of a future run on the thread that they may wait for",
        HERE + "staged_work.h",
        "callbacks_.run([self, future] { self->mark(future, self->exception()); });",
        "self->mark(future, self->exception());",
        (COLLECTIVES + "test_a_collective_in_a_callback",),
        hangs=True,
    ),
    Fault(
        "a wait with a time-out ends before the device has the results",
        HERE + "staged_work.h",
        "forever ? Ends{} : ends_",
        "Ends{}",
        (COLLECTIVES + "test_wait_for_a_time",),
    ),
    Fault(
        "coalesced works end with the first",
        HERE + "staged_group.h",
        "one->wait_on_host(kNoTimeout);",
        "static_cast<void>(one);",
        (COLLECTIVES + "test_messages[batch_whose_first_message_comes_last]",),
    ),
    Fault(
        "an exception is lost",
        HERE + "staged_group.h",
        "work->complete({}, why);",
        "work->complete({}, nullptr);",
        ("test_groups_end.py::test_a_rank_is_killed_in_a_collective[all_reduce]",),
    ),
    Fault(
        "a wait for other ranks goes on after an abort",
        HERE + "staged_group.h",
        "work->complete({}, failure(*work, kAborted));",
        "static_cast<void>(work);",
        ("test_failed_works.py::test_an_abort_ends_a_wait[irecv-a group]",),
        hangs=True,
    ),
    Fault(
        "ranks name a part of a group by the number of their groups",
        "torch_foo/_parallel.py",
        "name or original(*arguments, **options)",
        "original(*arguments, **options)",
        ("test_parallel.py::test_split_group[without_the_last]",),
        hangs=True,
    ),
    Fault(
        "the phases of a step end before they begin",
        HERE + "timer.h",
        "last.elapsed_ms(first)",
        "first.elapsed_ms(last)",
        ("test_parallel.py::test_ddp_logging_data",),
    ),
    Fault(
        "a monitored barrier is PyTorch's own, which knows only groups of Gloo",
        "torch_foo/_parallel.py",
        '"cpu:gloo" not in parts',
        "True",
        (COLLECTIVES + "test_messages[monitored_barrier]",),
    ),
    Fault(
        "the order of unsigned numbers is that of signed ones",
        HERE + "reduction.h",
        "compares() ? std::numeric_limits<std::int64_t>::min() : 0",
        "0",
        (COLLECTIVES + "test_extrema_of_numbers_beyond_int64[all_reduce-MAX]",),
    ),
]
