# SPDX-License-Identifier: Apache-2.0
"""Faults of process groups whose collectives are the driver's, as the simulator's are."""

from fault import Fault

HERE = "include/backendkit/distributed/"
COLLECTIVES = "test_collectives.py::"

DRIVER_GROUPS = [
    Fault(
        "the driver does not wait for what a program computes",
        HERE + "driver_group.h",
        "StreamPoint(device_guard().getStream(stream.device())).block(stream);",
        "static_cast<void>(stream);",
        (COLLECTIVES + "test_side_streams[result_of_a_side_stream-1048577]",),
    ),
    Fault(
        "nobody waits for the driver's results",
        HERE + "driver_group.h",
        "work->complete(Work::End{stream, end}, nullptr);",
        "work->complete(std::nullopt, nullptr);",
        (COLLECTIVES + "test_side_streams[wait_under_another_stream-1048577]",),
    ),
    Fault(
        "memory that the driver still writes is given away",
        HERE + "driver_group.h",
        "device_guard().recordDataPtrOnStream(one.storage().data_ptr(), stream);",
        "static_cast<void>(one);",
        (COLLECTIVES + "test_side_streams[results_freed_before_the_end-1048577]",),
    ),
    Fault(
        "a collective that does not end is not noticed",
        HERE + "driver_watch.h",
        "Clock::now() > one.deadline",
        "Clock::now() < Clock::time_point::min()",
        ("test_groups_end.py::test_a_rank_does_not_come[all_reduce]",),
        hangs=True,
    ),
    Fault(
        "results of an aborted collective count as right",
        HERE + "driver_watch.h",
        "LostWork::add(text_);",
        "static_cast<void>(text_);",
        ("test_groups_end.py::test_a_rank_does_not_come[all_reduce]",),
    ),
    Fault(
        "results count as right whose group was aborted and destroyed during the wait",
        "include/backendkit/device/lost_work.h",
        "times_ == times_before",
        "true",
        ("test_failed_works.py::test_an_abort_ends_a_wait[all_reduce-all groups]",),
        hangs=True,
    ),
    Fault(
        "an input is read after an output in its place was written",
        HERE + "apart.h",
        "if (overlap(input, output)) return input.detach().clone();",
        "static_cast<void>(output);",
        (COLLECTIVES + "test_groups_beside_each_other[inputs_among_the_outputs]",),
    ),
    Fault(
        "a message into a tensor with gaps is lost",
        HERE + "driver_messages.h",
        "bring(messages[i].message.tensor, data[i]);",
        "static_cast<void>(i);",
        ("test_bound_groups.py::test_programs[other_layouts]",),
    ),
    Fault(
        "one rank's device_id is enough for messages of the driver",
        "torch_foo/_distributed.py",
        'votes.get(connected) == b"1"',
        "True",
        ("test_bound_groups.py::test_only_one_rank_has_a_device_id",),
        hangs=True,
    ),
    Fault(
        "the driver's averages are sums",
        HERE + "driver_numbers.h",
        "Reduce::kAverage",
        "Reduce::kSum",
        (COLLECTIVES + "test_all_reduce[AVG-float32]",),
    ),
    Fault(
        "the driver's scaled sums are not scaled",
        HERE + "driver_calls.h",
        "numbers.factor ? data.mul(at::Scalar(*numbers.factor)) : data",
        "data",
        (COLLECTIVES + "test_all_reduce[PREMUL_SUM-float32]",),
    ),
    Fault(
        "the driver adds bools as numbers",
        HERE + "driver_numbers.h",
        "reduce_of(checked.host_op().op_)",
        "reduce_of(op.op_)",
        (COLLECTIVES + "test_all_reduce[SUM-bool]",),
    ),
    Fault(
        "the driver reduces half of complex numbers",
        HERE + "driver_calls.h",
        "data.numel() * numbers.each",
        "data.numel()",
        (COLLECTIVES + "test_sums_of_every_dtype[reduce_scatter_tensor-complex64]",),
    ),
    Fault(
        "the driver always broadcasts from the first rank",
        HERE + "driver_calls.h",
        "broadcast(place, data, options.rootRank);",
        "broadcast(place, data, 0);",
        (COLLECTIVES + "test_data_of_every_dtype[broadcast-float32]",),
    ),
    Fault(
        "each output that the driver gathers is the first rank's",
        HERE + "driver_calls.h",
        "outputs[rank].copy_(parts[rank].reshape(outputs[rank].sizes()));",
        "outputs[rank].copy_(parts[0].reshape(outputs[rank].sizes()));",
        (COLLECTIVES + "test_data_of_every_dtype[all_gather-float32]",),
    ),
    Fault(
        "the driver's result does not come to a tensor with gaps",
        HERE + "driver_data.h",
        "if (tensor.const_data_ptr() != result.const_data_ptr()) tensor.detach().copy_(result);",
        "static_cast<void>(tensor);",
        (COLLECTIVES + "test_tensors_that_are_no_whole_memory[all_reduce-strided]",),
    ),
    Fault(
        "the driver sends each rank the first part",
        HERE + "driver_data.h",
        "data += size;",
        "data += 0;",
        (COLLECTIVES + "test_data_of_every_dtype[all_to_all_single-float32]",),
    ),
]
