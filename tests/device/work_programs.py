# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_collectives.py: works, streams, groups and threads."""

from __future__ import annotations

import contextlib
import datetime
import os

import torch
import torch.distributed as dist
from backend import lacking
from collective_programs import (
    REDUCTIONS,
    Call,
    Laid,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    bits,
    broadcast,
    combined,
    one,
    reduced,
    same,
    small,
)
from ranks import shared_store
from stream_tools import current, in_threads, on

# --- works ------------------------------------------------------------------------------------


def states_of_a_work(here):
    tensor = small(here.rank, (5,), torch.float32).to(here.device)
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait()
    synchronize(here)
    assert work.is_completed()
    if hasattr(work, "is_success"):
        assert work.is_success()
    reduced("SUM", work.result()[0], [small(r, (5,), torch.float32) for r in range(here.size)])


def future_of(here, collective, fill=bits, shape=(6, 2)):
    """A work's future has the results, on their device."""
    call = Call(here, lambda rank, part: fill(rank, shape, torch.float32, part), async_op=True)
    work, check = collective(call)
    values = work.get_future().wait()
    values = values if isinstance(values, (list, tuple)) else [values]
    tensors = [one for value in values for one in (value if isinstance(value, list) else [value])]
    assert all(one.device == here.device for one in tensors), tensors
    check()
    return len(tensors)


def then_of_a_future(here):
    """What is chained to a future sees the result, and can compute with it at once."""
    tensor = small(here.rank, (1000,), torch.float32).to(here.device)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    chained = future.then(lambda done: done.value()[0] * 2).then(lambda done: done.value() + 1)
    total = combined("SUM", [small(rank, (1000,), torch.float32) for rank in range(here.size)])
    same(chained.wait(), total * 2 + 1)
    assert chained.done()


def collective_in_a_callback(here):
    """What is chained to a future may start another collective, and wait for it."""
    tensor = small(here.rank, (10,), torch.float32).to(here.device)

    def again(done):
        other = done.value()[0].clone()
        dist.all_reduce(other)
        return other

    chained = dist.all_reduce(tensor, async_op=True).get_future().then(again)
    total = combined("SUM", [small(rank, (10,), torch.float32) for rank in range(here.size)])
    same(chained.wait(), total * here.size)


def collected_futures(here):
    tensors = [small(here.rank, (50,), torch.float32, part).to(here.device) for part in range(4)]
    futures = [dist.all_reduce(one, async_op=True).get_future() for one in tensors]
    torch.futures.wait_all(futures)
    for part, tensor in enumerate(tensors):
        everyone = [small(rank, (50,), torch.float32, part) for rank in range(here.size)]
        same(tensor, combined("SUM", everyone))


def many_at_once(here, reverse):
    """Works of several collectives in flight; awaited in this order, or from the last."""
    checks, works = [], []
    for number in range(20):
        collective = (all_reduce, all_gather, broadcast, all_gather_into_tensor)[number % 4]
        fill = small if collective is all_reduce else bits

        def give(rank, part, number=number, fill=fill):
            return fill(rank, (100 + number,), torch.float32, part + 10 * number)

        work, check = collective(Call(here, give, async_op=True))
        works.append(work)
        checks.append(check)
    for work in reversed(works) if reverse else works:
        work.wait()
    for check in checks:
        check()


def begins_before_the_others(here, collective, layout, turn):
    """With `async_op`, a call returns although no other rank has come, also where results have to
    be copied to a tensor that is not dense."""
    store = shared_store()
    fill = small if collective in REDUCTIONS else bits
    lay = None if layout == "dense" else Laid(layout, here.device)
    dist.all_reduce(torch.zeros(1, device=here.device))  # the first one of a group connects
    if here.rank > 0:
        store.wait([turn])
    call = Call(
        here,
        lambda rank, part: fill(rank, (4, 6), torch.float32, part),
        async_op=True,
        lay=lay,
    )
    work, check = collective(call)
    if here.rank == 0:
        store.set(turn, "begun")
    work.wait()
    check()


def wait_for_a_time(here):
    """A wait with a time-out lets the host wait until the result is there, or is an error."""
    tensor = torch.ones(3, device=here.device)
    dist.all_reduce(tensor)  # the first one of a group takes long itself
    synchronize(here)
    dist.barrier()
    store = shared_store()
    if here.rank == 1:
        store.wait([f"waited {rank}" for rank in range(here.size) if rank != 1])
    work = dist.all_reduce(tensor, async_op=True)
    if here.rank != 1:
        try:
            work.wait(datetime.timedelta(milliseconds=200))
        except dist.DistBackendError as error:
            assert "is not done after 200 ms" in str(error)
        else:
            raise AssertionError("the wait ended although a rank did not come")
        finally:
            store.set(f"waited {here.rank}", "")
    work.wait(datetime.timedelta(seconds=60))
    assert work.is_completed()
    same(tensor, torch.full((3,), float(here.size**2)))


def in_place_after_wait(here, count):
    """The tensor of a work is used, and sent again, without another wait."""
    tensor = torch.ones(count, device=here.device)
    for _ in range(5):
        dist.all_reduce(tensor, async_op=True).wait()
        tensor.add_(1).div_(2)
    expected = 1.0
    for _ in range(5):
        expected = (expected * here.size + 1) / 2
    same(tensor, torch.full((count,), expected))


def in_place_after_a_call(here, count):
    tensor = torch.full((count,), here.rank + 1.0, device=here.device)
    dist.all_reduce(tensor)
    tensor.mul_(2)
    dist.broadcast(tensor, 0)
    tensor.add_(1)
    same(tensor, torch.full((count,), here.size * (here.size + 1.0) + 1))


def result_right_after_computing(here, count):
    """What is sent is computed just before, by work that the device may not have begun."""
    for number in range(5):
        tensor = torch.full((count,), float(here.rank + number), device=here.device)
        for _ in range(10):
            tensor = tensor + 1
        dist.all_reduce(tensor)
        each = [rank + number + 10.0 for rank in range(here.size)]
        same(tensor, torch.full((count,), sum(each)))


def forgotten_works(here):
    """Works whose handles, and tensors, nobody keeps."""
    for number in range(20):
        dist.all_reduce(torch.full((1000,), float(number), device=here.device), async_op=True)
    one(here, all_reduce, torch.float32, (10,), small)


def freed_after_issue(here, count):
    """The memory of what was sent is given to others before it has been read."""
    out = torch.zeros(here.size * count, device=here.device)
    given = torch.full((count,), here.rank + 1.0, device=here.device)
    work = dist.all_gather_into_tensor(out, given, async_op=True)
    del given
    others = [torch.full((count,), -1.0, device=here.device) for _ in range(3)]
    work.wait()
    same(out, torch.arange(1.0, here.size + 1).repeat_interleave(count))
    return len(others)


def events_of_a_profile(here):
    """A profile shows collectives by the name of the group, with the shapes of what they read."""
    tensor = small(here.rank, (5,), torch.float32).to(here.device)
    out = [torch.zeros(5, device=here.device) for _ in range(here.size)]
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(tensor)
        dist.all_gather(out, tensor)
    for name in ("all_reduce", "all_gather"):
        events = [one for one in profile.function_events if one.name.endswith(f":{name}")]
        assert [one.input_shapes for one in events] == [[[5]]], (name, events)


def requires_grad_is_kept(here):
    """Parameters are reduced in place, as they are broadcast at the start of a training."""
    weight = torch.nn.Parameter(torch.full((3,), float(here.rank), device=here.device))
    with torch.no_grad():
        dist.broadcast(weight, 0)
    dist.broadcast(weight.data, 0)
    assert weight.requires_grad and weight.is_leaf
    same(weight, torch.zeros(3))


# --- several groups, threads and devices ------------------------------------------------------


def synchronize(here):
    if here.device.type != "cpu":
        getattr(torch, here.device.type).synchronize()


@contextlib.contextmanager
def new_group(here, *arguments, **named):
    """A group of the device's kind, as programs make it, that is destroyed at the end."""
    group = dist.new_group(*arguments, **named)
    try:
        yield group
        dist.barrier()  # or one would destroy the group while another one still connects
    finally:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


def in_a_new_group(here, collective):
    with new_group(here) as group:
        fill = small if collective in REDUCTIONS else bits
        one(here, collective, torch.float32, (4, 3), fill, group=group)


def in_groups_of_one(here):
    """Every rank makes every group, and is in one."""
    groups = [dist.new_group([rank]) for rank in range(here.size)]
    tensor = torch.full((3,), float(here.rank), device=here.device)
    dist.all_reduce(tensor, group=groups[here.rank])
    same(tensor, torch.full((3,), float(here.rank)))
    dist.destroy_process_group(groups[here.rank])


def in_a_part(here):
    """A group of all ranks but the last; the last gets nothing of it."""
    ranks = list(range(here.size - 1))
    with new_group(here, ranks) as group:
        tensor = torch.full((3,), here.rank + 1.0, device=here.device)
        if here.rank in ranks:
            dist.all_reduce(tensor, group=group)
            same(tensor, torch.full((3,), sum(rank + 1.0 for rank in ranks)))
        else:
            assert group is dist.GroupMember.NON_GROUP_MEMBER


def in_reversed_order(here):
    """A group's ranks are those of its list, unless PyTorch sorts it."""
    with new_group(here, list(reversed(range(here.size)))) as group:
        call = Call(here, lambda rank, part: bits(rank, (3,), torch.float32, part), group=group)
        _, check = all_gather(call)
        check()


def subgroups(here):
    group, _ = dist.new_subgroups(1)
    tensor = torch.full((3,), float(here.rank), device=here.device)
    dist.all_reduce(tensor, group=group)
    same(tensor, torch.full((3,), float(here.rank)))


def alternating_groups(here):
    with new_group(here) as first, new_group(here) as second:
        for number in range(10):
            tensor = torch.full((64,), here.rank + float(number), device=here.device)
            works = [dist.all_reduce(tensor, group=first, async_op=True)]
            other = torch.full((64,), float(here.rank), device=here.device)
            works.append(dist.all_reduce(other, group=second, async_op=True))
            for work in reversed(works):
                work.wait()
            ranks = sum(range(here.size))
            same(tensor, torch.full((64,), float(ranks + here.size * number)))
            same(other, torch.full((64,), float(ranks)))


def two_threads(here, count=30):
    """Each has its group and stream; their order is free, and differs between the ranks."""
    with new_group(here) as first, new_group(here) as second:

        def work(number):
            group = (first, second)[number]
            for step in range(count):
                tensor = torch.full((100,), float(here.rank + step), device=here.device)
                dist.all_reduce(tensor, group=group)
                each = [rank + step for rank in range(here.size)]
                same(tensor, torch.full((100,), float(sum(each))), f"thread {number}, {step}")

        def work_on_a_stream(number):
            if lacking(here.device.type, "streams"):
                work(number)
                return
            # On one stream, the work of each thread would wait for that of the other one.
            with on(torch.Stream(device=here.device)):
                work(number)

        in_threads(work_on_a_stream, 2)


def alternating_collectives(here, count=60):
    """One begins where another one may still bring its results."""
    sums, sent = [], []
    for step in range(count):
        sums.append(torch.full((300,), float(here.rank + step), device=here.device))
        dist.all_reduce(sums[-1])
        sent.append(torch.full((300,), float(here.rank + step), device=here.device))
        dist.broadcast(sent[-1], step % here.size)
    for step, (total, got) in enumerate(zip(sums, sent)):
        each = [float(rank + step) for rank in range(here.size)]
        same(total, torch.full((300,), sum(each)), f"sum {step}")
        same(got, torch.full((300,), each[step % here.size]), f"broadcast {step}")


def in_place(here):
    """Outputs where the inputs are: what is read must not have been written."""
    count = 1 << 17
    mine = torch.arange(here.size * count, dtype=torch.float32) + 1000 * here.rank
    tensor = mine.to(here.device)
    dist.all_to_all_single(tensor, tensor)
    parts = torch.arange(count, dtype=torch.float32) + here.rank * count
    same(tensor, torch.cat([parts + 1000 * rank for rank in range(here.size)]))
    tensor = torch.zeros(here.size, count, device=here.device)
    tensor[here.rank] = here.rank + 1.0
    dist.all_gather_into_tensor(tensor, tensor[here.rank])
    each = torch.arange(1.0, here.size + 1)[:, None].expand(here.size, count)
    same(tensor, each.contiguous())
    tensor = torch.ones(here.size * count, device=here.device)
    dist.reduce_scatter_tensor(tensor[:count], tensor)
    same(tensor[:count], torch.full((count,), float(here.size)))


def inputs_among_the_outputs(here):
    """An input that is where another rank's output goes, or an output where another's input is."""
    count = 1 << 17

    def rows():
        numbers = torch.arange(here.size * count, dtype=torch.float32) + 1000 * here.rank
        return numbers.view(here.size, count).to(here.device).clone()

    def of_ranks(row):
        each = [torch.arange(count) + count * row(rank) + 1000 * rank for rank in range(here.size)]
        return torch.stack(each).float()

    def following(rank):
        return (rank + 1) % here.size

    tensor = rows()
    dist.all_gather_into_tensor(tensor, tensor[here.next])
    same(tensor, of_ranks(following), "all_gather_into_tensor")
    tensor = rows()
    dist.all_gather(list(tensor), tensor[here.next])
    same(tensor, of_ranks(following), "all_gather")
    tensor = rows()
    dist.all_to_all(list(tensor), list(tensor))
    same(tensor, of_ranks(lambda rank: here.rank), "all_to_all")
    for root in range(here.size):
        tensor = rows()
        dist.gather(tensor[here.next], list(tensor) if here.rank == root else None, root)
        if here.rank == root:
            same(tensor, of_ranks(following), f"gather to {root}")
        tensor = rows()
        dist.scatter(tensor[here.next], list(tensor) if here.rank == root else None, root)
        numbers = torch.arange(count) + count * here.rank + 1000 * root
        same(tensor[here.next], numbers.float(), f"scatter from {root}")


def inputs_across_outputs(here, count):
    """An input that is partly where the outputs of two ranks go, and an output across inputs."""
    whole = torch.arange(here.size * count + 1, dtype=torch.float32)
    tensor = (whole + here.rank).to(here.device)
    outputs = tensor[1:].view(here.size, count)
    dist.all_gather_into_tensor(outputs, tensor[count // 2 :][:count])
    given = whole[count // 2 :][:count]
    same(outputs, torch.stack([given + rank for rank in range(here.size)]), "all_gather")
    tensor = (whole + here.rank).to(here.device)
    inputs = list(tensor[:-1].view(here.size, count)) if here.rank == 0 else None
    output = tensor[here.rank * count + 1 :][:count]
    dist.scatter(output, inputs, 0)
    same(output, whole[here.rank * count :][:count], "scatter")
    tensor = whole.to(here.device)
    dist.reduce_scatter_tensor(tensor[1 : count + 1], tensor[:-1])
    same(tensor[1 : count + 1], here.size * whole[here.rank * count :][:count], "reduce_scatter")


def cpu_and_device(here):
    """One group serves tensors of both, in one order."""
    works, tensors = [], []
    for number in range(10):
        place = here.device if number % 2 else torch.device("cpu")
        tensors.append(torch.full((50,), float(here.rank + number), device=place))
        works.append(dist.all_reduce(tensors[-1], async_op=True))
    for work in works:
        work.wait()
    for number, tensor in enumerate(tensors):
        total = float(sum(rank + number for rank in range(here.size)))
        same(tensor, torch.full((50,), total))


def groups_leave_no_files(here):
    """Groups that were made and destroyed, time after time, leave no open file."""

    def made(count):
        for _ in range(count):
            with new_group(here) as group:
                dist.all_reduce(torch.ones(3, device=here.device), group=group)
        return len(os.listdir("/proc/self/fd"))

    before = made(3)
    after = made(15)
    assert after <= before + 5, f"{before} files are open after 3 groups, {after} after 15 more"


# --- streams ----------------------------------------------------------------------------------


def keep_busy(here, stream, copies=20):
    """Gives a stream work for some milliseconds."""
    with on(stream):
        source, target = (torch.zeros(1 << 20, device=here.device) for _ in range(2))
        for _ in range(copies):
            target.copy_(source)


def late(here, stream, value, count):
    """A tensor that gets its value when the stream has done long work.

    Only a copy within the device is sure to be left to the stream: other operators may fall back to
    the CPU, for which the host waits.
    """
    dist.all_reduce(
        torch.zeros(1, device=here.device)
    )  # the first one of a group takes long itself
    with on(stream):
        source = torch.full((count,), float(value), device=here.device)
        tensor = torch.zeros(count, device=here.device)
    synchronize(here)
    keep_busy(here, stream)
    with on(stream):
        tensor.copy_(source)
    return tensor


def result_of_a_side_stream(here, count):
    """What another stream computes, behind long work, is sent once it is there."""
    side = torch.Stream(device=here.device)
    tensor = late(here, side, here.rank + 1, count)
    with on(side):
        dist.all_reduce(tensor)
        tensor.add_(1)
    side.synchronize()
    total = sum(rank + 1.0 for rank in range(here.size))
    same(tensor, torch.full((count,), total + 1))


def wait_under_another_stream(here, count):
    """The stream that is current at wait(), and no other, sees the result."""
    first, second = (torch.Stream(device=here.device) for _ in range(2))
    total = sum(rank + 1.0 for rank in range(here.size))
    for _ in range(20 if count < 1000 else 3):  # whether the stream waits is a matter of moments
        copy = torch.zeros(count, device=here.device)
        tensor = late(here, first, here.rank + 1, count)
        with on(first):
            handle = dist.all_reduce(tensor, async_op=True)
        with on(second):
            handle.wait()
            copy.copy_(tensor)
        second.synchronize()
        same(copy, torch.full((count,), total))


def results_overwrite_what_was_read(here, count):
    """A result comes after what the stream, which is busy, has still to read of the tensor."""
    side = torch.Stream(device=here.device)
    tensor = torch.full((count,), here.rank + 1.0, device=here.device)
    copy = torch.zeros(count, device=here.device)
    synchronize(here)
    if here.rank:  # the first rank, which sends, is not
        keep_busy(here, side, copies=200)  # longer than the group takes to bring the result
    with on(side):
        copy.copy_(tensor)
        dist.broadcast(tensor, 0)
    side.synchronize()
    same(copy, torch.full((count,), here.rank + 1.0))
    same(tensor, torch.ones(count))


def message_of_a_side_stream(here, count):
    """What a stream computes, behind long work, is sent to one rank once it is there."""
    side = torch.Stream(device=here.device)
    out = torch.zeros(count, device=here.device)
    tensor = late(here, side, here.rank + 1, count)
    with on(side):
        works = [dist.isend(tensor, here.next), dist.irecv(out, here.before)]
        for work in works:
            work.wait()
    side.synchronize()
    same(out, torch.full((count,), here.before + 1.0))


def barrier_after_long_work(here):
    """A barrier on the device is passed after what the device was given before it."""
    stream = current(here.device)
    keep_busy(here, stream, copies=200)
    event = torch.Event(device=here.device.type)
    event.record(stream)
    dist.barrier(device_ids=[here.device.index])
    assert event.query()


def barrier_for_another_device(here):
    """A barrier is for the devices that the group has used, and not only for the current one."""
    module, kind = getattr(torch, here.device.type), here.device.type
    known = dist.Backend.default_device_backend_map
    group = dist.new_group(backend=known[kind])  # without a part for the CPU, to do the barrier
    dist.all_reduce(torch.zeros(1, device=here.device), group=group)
    dist.all_reduce(torch.zeros(1))  # now, all ranks are here
    stream = current(here.device)
    keep_busy(here, stream, copies=200)
    event = torch.Event(device=kind)
    event.record(stream)
    module.set_device((here.device.index + 1) % module.device_count())
    try:
        dist.barrier(group)
    finally:
        module.set_device(here.device.index)
    assert event.query()
    dist.destroy_process_group(group)


def freed_on_a_side_stream(here, count):
    """Memory of a side stream, freed after issue, is not given away before it was read."""
    side = torch.Stream(device=here.device)
    out = torch.zeros(here.size * count, device=here.device)
    wrong = torch.full((count,), -1.0, device=here.device)
    given = late(here, side, here.rank + 1, count)
    with on(side):
        handle = dist.all_gather_into_tensor(out, given, async_op=True)
        del given
        for _ in range(3):
            torch.empty(count, device=here.device).copy_(wrong)
        handle.wait()
    side.synchronize()
    same(out, torch.arange(1.0, here.size + 1).repeat_interleave(count))


def results_freed_before_the_end(here, count):
    """A result that nobody keeps is not written after its memory was given to others."""
    side = torch.Stream(device=here.device)
    source = torch.full((count,), 5.0, device=here.device)
    synchronize(here)
    kept = []
    few = count > 1000
    for _ in range(2 if few else 20):
        with on(side):
            tensor = torch.full((count,), 1.0, device=here.device)
            dist.all_reduce(tensor, async_op=True)
            del tensor
            for _ in range(5 if few else 20):  # one of them comes as soon as the memory is free
                kept.append(torch.empty(count, device=here.device).copy_(source))
                side.synchronize()
        dist.barrier()
    for tensor in kept:
        same(tensor, torch.full((count,), 5.0))


def alternating_streams(here, count=2000):
    """One group, from two streams in turn: works keep the order in which they were issued."""
    streams = [torch.Stream(device=here.device) for _ in range(2)]
    tensors = [torch.zeros(count, device=here.device) for _ in streams]
    synchronize(here)
    for step in range(10):
        with on(streams[step % 2]):
            tensors[step % 2].add_(here.rank + step)
            dist.all_reduce(tensors[step % 2])
    for stream in streams:
        stream.synchronize()
    expected = [0.0, 0.0]
    for step in range(10):
        ranks = sum(range(here.size)) + here.size * step
        expected[step % 2] = expected[step % 2] * here.size + ranks
    for tensor, number in zip(tensors, expected):
        same(tensor, torch.full((count,), number))


def chained_on_a_side_stream(here, count=2000):
    """Callbacks of a future compute after the result is there, whichever stream is current."""
    side = torch.Stream(device=here.device)
    synchronize(here)
    keep_busy(here, side)
    with on(side):
        tensor = torch.full((count,), here.rank + 1.0, device=here.device)
        future = dist.all_reduce(tensor, async_op=True).get_future()
        chained = future.then(lambda done: done.value()[0] * 2)
        result = chained.wait() + 1
    side.synchronize()
    same(result, torch.full((count,), 2 * sum(r + 1.0 for r in range(here.size)) + 1))


def events_after_wait(here, count):
    """An event recorded after wait() has come only when the result is there."""
    tensor = torch.full((count,), 1.0, device=here.device)
    handle = dist.all_reduce(tensor, async_op=True)
    handle.wait()
    event = torch.Event(device=here.device.type)
    event.record(current(here.device))
    event.synchronize()
    side = torch.Stream(device=here.device)
    with on(side):  # does not wait for the first stream
        copy = tensor.clone()
    side.synchronize()
    same(copy, torch.full((count,), float(here.size)))
