# SPDX-License-Identifier: Apache-2.0
"""Collectives of torch.distributed on the device, between `--world-size` processes.

Results are those that each rank computes on the CPU: data that is moved is the same to the bit, and
so are sums, because the numbers are small.
"""

import os
import time

import collective_programs as programs
import message_programs as messages
import pytest
import torch
import work_programs as works
from backend import RELEASE
from collective_programs import MOVES, REDUCTIONS

pytestmark = pytest.mark.needs("distributed")


def each(names):
    """A parameter for each of these functions or dtypes."""
    return [pytest.param(one, id=getattr(one, "__name__", str(one)[6:])) for one in names]


def having(*names):
    """The dtypes of these names that this release has."""
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


FLOATS = having("float64", "float32", "float16", "bfloat16")
INTEGERS = having("uint8", "int8", "int16", "int32", "int64")
UNSIGNED = having("uint16", "uint32", "uint64")
COMPLEX = having("complex64", "complex128", "complex32")
FLOAT8 = having("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
OTHERS = having("float8_e8m0fnu")
DTYPES = [*FLOATS, *INTEGERS, *UNSIGNED, torch.bool, *COMPLEX, *FLOAT8, *OTHERS]
WHOLE = [*INTEGERS, *UNSIGNED, torch.bool]
#: The dtypes that each operator has arithmetic for.
OPERATORS = {
    "SUM": [*FLOATS, *FLOAT8, *WHOLE, *COMPLEX],
    "AVG": [*FLOATS, *FLOAT8, *INTEGERS, *UNSIGNED, *COMPLEX],
    "PREMUL_SUM": [*FLOATS, *FLOAT8, *COMPLEX],
    "MIN": [*FLOATS, *FLOAT8, *WHOLE],
    "MAX": [*FLOATS, *FLOAT8, *WHOLE],
    "PRODUCT": [*FLOATS, *FLOAT8, *WHOLE],
    "BAND": WHOLE,
    "BOR": WHOLE,
    "BXOR": WHOLE,
}
SHAPES = [(), (0,), (0, 3), (1,), (7,), (3, 5), (2, 3, 4), (1, 1, 1, 1)]
#: Those that an array of a result for each rank can have.
LONG = [shape for shape in SHAPES if shape]
#: Of bytes: beside powers of two, at which chunks may end.
SIZES = [2**power + more for power in (12, 16, 20, 22) for more in (-1, 0, 1)]


def having_operator(name):
    if name == "PREMUL_SUM" and not hasattr(torch.distributed, "_make_nccl_premul_sum"):
        pytest.skip("this PyTorch was built without `_make_nccl_premul_sum`")


# --- data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", each(DTYPES))
@pytest.mark.parametrize("collective", each(MOVES))
def test_data_of_every_dtype(ranks, collective, dtype):
    ranks(programs.one, collective, dtype, (5, 3))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("collective", each([programs.broadcast, programs.gather]))
def test_data_of_every_shape(ranks, collective, shape):
    ranks(programs.one, collective, torch.float32, shape)


@pytest.mark.parametrize("shape", LONG, ids=str)
@pytest.mark.parametrize(
    "collective", each([programs.all_gather_into_tensor, programs.all_to_all_single])
)
def test_data_of_every_shape_in_one_tensor(ranks, collective, shape):
    ranks(programs.one, collective, torch.float32, shape)


@pytest.mark.parametrize("collective", each(MOVES))
def test_data_of_no_element(ranks, collective):
    ranks(programs.one, collective, torch.float32, (0, 4))


@pytest.mark.parametrize("collective", each(MOVES + REDUCTIONS))
def test_async_op(ranks, collective):
    fill = programs.small if collective in REDUCTIONS else programs.bits
    ranks(programs.one, collective, torch.float32, (4, 5), fill, async_op=True)


@pytest.mark.parametrize("collective", each(MOVES + REDUCTIONS))
def test_in_inference_mode(ranks, collective):
    ranks(programs.in_inference_mode, collective)


def test_batch_in_inference_mode(ranks):
    ranks(messages.batch_in_inference_mode)


def test_autograd_does_not_see_it(ranks):
    ranks(programs.unseen_by_autograd)


@pytest.mark.parametrize("size", SIZES)
def test_data_of_sizes_about_powers_of_two(ranks, size):
    ranks(programs.one, programs.broadcast, torch.uint8, (size,))


@pytest.mark.parametrize("collective", each(MOVES))
def test_data_of_megabytes(ranks, collective):
    """More than a step of a staged collective brings for each rank."""
    ranks(programs.one, collective, torch.uint8, (2**23 + 5,))


def test_40_megabytes(ranks):
    ranks(programs.one, programs.all_reduce, torch.float32, (10 * 2**20 + 3,), programs.small)


@pytest.mark.parametrize("dtype", each([torch.float32, torch.bfloat16, torch.int64, torch.bool]))
def test_uneven_all_gather(ranks, dtype):
    ranks(programs.uneven, programs.all_gather, dtype)


@pytest.mark.parametrize("dtype", each([torch.float32, torch.int64]))
def test_uneven_reduce_scatter(ranks, dtype):
    ranks(programs.uneven_reduce_scatter, dtype)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("dtype", each([torch.float32, torch.bfloat16, torch.int64, torch.bool]))
def test_uneven_all_to_all_single(ranks, dtype, empty):
    ranks(programs.uneven_all_to_all_single, dtype, empty)


@pytest.mark.parametrize("dtype", each([torch.float32, torch.bfloat16]))
def test_uneven_all_to_all(ranks, dtype):
    ranks(programs.uneven_all_to_all, dtype)


def test_gathered_as_a_stack(ranks):
    ranks(programs.gathered_as_a_stack)


@pytest.mark.parametrize("layout", ["slice", "transposed", "strided"])
@pytest.mark.parametrize("collective", each(MOVES + REDUCTIONS))
def test_tensors_that_are_no_whole_memory(ranks, collective, layout):
    """One that is not contiguous may be refused, by every rank; nothing beside it is written."""
    answers = ranks(programs.laid, collective, layout)
    assert len(set(answers)) == 1, answers
    if layout == "slice":
        assert answers[0] == "taken"


# --- reductions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        pytest.param(op, dtype, id=f"{op}-{str(dtype)[6:]}")
        for op, dtypes in OPERATORS.items()
        for dtype in dtypes
    ],
)
def test_all_reduce(ranks, op, dtype):
    having_operator(op)
    ranks(programs.one, programs.all_reduce, dtype, (4, 3), programs.small, op=op)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("collective", each(REDUCTIONS[1:]))
def test_reductions_of_every_operator(ranks, collective, op):
    having_operator(op)
    dtype = torch.int32 if op.startswith("B") else torch.float32
    ranks(programs.one, collective, dtype, (4, 3), programs.small, op=op)


@pytest.mark.parametrize("dtype", each(OPERATORS["SUM"]))
@pytest.mark.parametrize("collective", each(REDUCTIONS[1:]))
def test_sums_of_every_dtype(ranks, collective, dtype):
    ranks(programs.one, collective, dtype, (4, 3), programs.small)


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("dtype", each([torch.float32, torch.float64, torch.int64]))
def test_sums_of_sparse_tensors(ranks, dtype, async_op):
    ranks(programs.sparse_sum, dtype, async_op)


def test_averages_of_negative_integers(ranks):
    """They are rounded towards zero, as NCCL's are."""
    ranks(programs.one, programs.all_reduce, torch.int32, (5,), programs.negative, op="AVG")


@pytest.mark.parametrize("op", ["MIN", "MAX"])
@pytest.mark.parametrize("collective", each([programs.all_reduce, programs.reduce_scatter]))
def test_extrema_of_numbers_beyond_int64(ranks, collective, op):
    ranks(programs.one, collective, torch.uint64, (3,), programs.large, op=op)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_reduce_of_every_shape(ranks, shape):
    ranks(programs.one, programs.all_reduce, torch.float32, shape, programs.small)


@pytest.mark.parametrize("shape", LONG, ids=str)
def test_reduce_scatter_of_every_shape(ranks, shape):
    ranks(programs.one, programs.reduce_scatter_tensor, torch.float32, shape, programs.small)


@pytest.mark.parametrize("op", ["SUM", "AVG", "MAX"])
@pytest.mark.parametrize("collective", each(REDUCTIONS))
def test_reductions_of_megabytes(ranks, collective, op):
    ranks(programs.one, collective, torch.float32, (2**21 + 5,), programs.small, op=op)


# --- works and futures ------------------------------------------------------------------------


def test_wait_for_a_time(ranks):
    ranks(works.wait_for_a_time)


@pytest.mark.parametrize("layout", ["dense", "transposed", "strided"])
@pytest.mark.parametrize("collective", each(MOVES[:-1] + REDUCTIONS))
def test_begins_before_the_others(ranks, name, collective, layout):
    if name == "cpu" and layout != "dense":
        pytest.skip("Gloo takes dense tensors only")
    ranks(works.begins_before_the_others, collective, layout, str(time.time_ns()))


def test_states_of_a_work(ranks):
    ranks(works.states_of_a_work)


@pytest.mark.parametrize("collective", each(MOVES[:-1] + REDUCTIONS))
def test_futures_have_the_results(ranks, collective):
    fill = programs.small if collective in REDUCTIONS else programs.bits
    ranks(works.future_of, collective, fill)


def test_then_of_a_future(ranks):
    ranks(works.then_of_a_future)


def test_a_collective_in_a_callback(ranks):
    ranks(works.collective_in_a_callback)


def test_collected_futures(ranks):
    ranks(works.collected_futures)


@pytest.mark.parametrize("reverse", [False, True])
def test_many_works_at_once(ranks, reverse):
    ranks(works.many_at_once, reverse)


@pytest.mark.parametrize("count", [1, 1000, 2**20 + 1])
@pytest.mark.parametrize(
    "program",
    each(
        [
            works.in_place_after_wait,
            works.in_place_after_a_call,
            works.result_right_after_computing,
            works.freed_after_issue,
        ]
    ),
)
def test_order_of_computing_and_sending(ranks, program, count):
    ranks(program, count)


@pytest.mark.parametrize("program", each([works.forgotten_works, works.requires_grad_is_kept]))
def test_works_that_nobody_keeps_and_parameters(ranks, program):
    ranks(program)


def test_events_of_a_profile(ranks):
    ranks(works.events_of_a_profile)


# --- streams ----------------------------------------------------------------------------------


@pytest.mark.needs("streams")
@pytest.mark.parametrize("count", [10, 2**20 + 1])
@pytest.mark.parametrize(
    "program",
    each(
        [
            works.result_of_a_side_stream,
            works.wait_under_another_stream,
            works.results_overwrite_what_was_read,
            works.message_of_a_side_stream,
            works.freed_on_a_side_stream,
            works.results_freed_before_the_end,
            works.chained_on_a_side_stream,
        ]
    ),
)
def test_side_streams(ranks, program, count):
    ranks(program, count)


@pytest.mark.needs("streams")
def test_streams_in_turn(ranks):
    ranks(works.alternating_streams)


@pytest.mark.skipif(
    RELEASE < (2, 7), reason="before PyTorch 2.7 a group's part for the CPU does its barriers"
)
@pytest.mark.needs("streams", "events")
def test_barrier_waits_for_the_device(ranks):
    ranks(works.barrier_after_long_work)


@pytest.mark.skipif(
    RELEASE < (2, 7), reason="before PyTorch 2.7 a group's part for the CPU does its barriers"
)
@pytest.mark.needs("streams", "events", "devices")
def test_barrier_waits_for_another_device(ranks):
    ranks(works.barrier_for_another_device)


@pytest.mark.needs("streams", "events")
def test_events_after_wait(ranks):
    ranks(works.events_after_wait, 2**20)


# --- groups and threads -----------------------------------------------------------------------


@pytest.mark.parametrize("collective", each(MOVES + REDUCTIONS))
def test_collectives_of_a_new_group(ranks, collective):
    ranks(works.in_a_new_group, collective)


@pytest.mark.parametrize(
    "program",
    each(
        [
            works.in_groups_of_one,
            works.in_a_part,
            works.in_reversed_order,
            works.subgroups,
            works.alternating_groups,
            works.two_threads,
            works.alternating_collectives,
            works.in_place,
            works.inputs_among_the_outputs,
            works.cpu_and_device,
        ]
    ),
)
def test_groups_beside_each_other(ranks, program):
    ranks(program)


@pytest.mark.parametrize("count", [1000, 3 << 20])
def test_inputs_across_outputs(ranks, count):
    ranks(works.inputs_across_outputs, count)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system has no /proc")
def test_groups_leave_no_files(ranks):
    ranks(works.groups_leave_no_files)


# --- messages, barriers and objects -----------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    each(
        [
            messages.tags_out_of_order,
            messages.answer_before_an_older_message,
            messages.recv_any_source,
            messages.batch,
            messages.batch_of_several,
            messages.batch_whose_first_message_comes_last,
            messages.barrier_with_devices,
            messages.monitored_barrier,
            messages.tensors_in_objects,
            messages.all_reduce_coalesced,
            messages.all_gather_coalesced,
        ]
    ),
)
def test_messages(ranks, program):
    ranks(program)


def test_batch_of_megabytes(ranks):
    ranks(messages.batch, 2**20 + 1)


@pytest.mark.parametrize("async_op", [False, True])
def test_barrier(ranks, async_op):
    ranks(messages.barrier, f"barrier {async_op}", async_op)


@pytest.mark.parametrize("by", ["cpu", "device"])
@pytest.mark.parametrize(
    "kind",
    [
        "broadcast_object_list",
        "all_gather_object",
        "gather_object",
        "scatter_object_list",
        "send_object_list",
    ],
)
def test_objects(ranks, kind, by):
    ranks(messages.objects, kind, by == "device")


@pytest.mark.parametrize("async_ops", [False, True])
@pytest.mark.parametrize(
    "collective", ["all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"]
)
def test_coalescing_manager(ranks, collective, async_ops):
    ranks(messages.coalesced, collective, async_ops)


@pytest.mark.parametrize("op", ["AVG", "MAX"])
def test_all_reduce_coalesced_of_other_operators(ranks, op):
    ranks(messages.all_reduce_coalesced, op)


@pytest.mark.parametrize("call", messages.REFUSED)
def test_what_is_refused_before_anything_is_sent(ranks, call):
    if "scaled sum" in call:
        having_operator("PREMUL_SUM")
    ranks(messages.refused, call)
