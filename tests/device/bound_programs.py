# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_bound_groups.py: messages in groups that have a `device_id`."""

from __future__ import annotations

import threading
import time

import pytest
import torch
import torch.distributed as dist
from collective_programs import bits, same
from message_programs import batch, together


def _given(here, count, seed=0):
    return bits(here.rank, (count,), torch.float32, seed).to(here.device)


def one_way(here, count):
    """Each rank sends to the next, in turn."""
    out = torch.zeros(count, device=here.device)
    for rank in range(here.size):
        if here.rank == rank:
            dist.send(_given(here, count, rank), here.next)
        elif here.before == rank:
            dist.recv(out, rank)
            same(out, bits(rank, (count,), torch.float32, rank), f"from {rank}")


def computed_before_and_used_after(here, count):
    """What is sent is computed just before, what comes is used at once, and nobody waits."""
    for number in range(5):
        tensor = torch.full((count,), float(here.rank + number), device=here.device)
        out = torch.zeros(count, device=here.device)
        for _ in range(10):
            tensor = tensor + 1
        sends = dist.P2POp(dist.isend, tensor, here.next)
        works = dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, out, here.before)])
        del tensor, sends
        others = [torch.full((count,), -1.0, device=here.device) for _ in range(3)]
        for work in works:
            work.wait()
        same(out * 2, torch.full((count,), 2 * (here.before + number + 10.0)), str(number))
        assert others


def one_sends_alone(here):
    """What a batch of one rank sends, another one receives by itself."""
    if here.rank == 0:
        together(dist.P2POp(dist.isend, _given(here, 5), 1))
    elif here.rank == 1:
        out = torch.zeros(5, device=here.device)
        assert dist.recv(out, 0) == 0
        same(out, bits(0, (5,), torch.float32))


def other_layouts(here):
    """A tensor with gaps, a transposed one, one number and none."""

    def both(make):
        out = make(torch.zeros(6, 4, device=here.device))
        given = make(_given(here, 24).view(6, 4))
        sends = dist.P2POp(dist.isend, given, here.next)
        together(sends, dist.P2POp(dist.irecv, out, here.before))
        expected = make(bits(here.before, (24,), torch.float32).view(6, 4))
        same(out.contiguous(), expected.contiguous())

    for make in (lambda x: x[:, ::2], lambda x: x.t(), lambda x: x[3, 2], lambda x: x[:0]):
        both(make)


def awaited_within_a_batch(here, by_driver):
    """A driver's message begins at the end of its batch: a wait before is an error, no hang."""
    out = torch.zeros(5, device=here.device)
    with dist._coalescing_manager(device=here.device):
        sent, got = dist.isend(_given(here, 5), here.next), dist.irecv(out, here.before)
        for work in (sent, got) if by_driver else ():
            with pytest.raises(RuntimeError, match="begins when its batch ends"):
                work.wait()
    sent.wait()
    got.wait()
    same(out, bits(here.before, (5,), torch.float32))


def in_a_pair(here):
    """A group of two ranks, one of which is not the first."""
    last = here.size - 1
    group = dist.new_group([0, last])
    if here.rank in (0, last):
        out = torch.zeros(7, device=here.device)
        sends = dist.P2POp(dist.isend, _given(here, 7), last - here.rank, group)
        together(sends, dist.P2POp(dist.irecv, out, last - here.rank, group))
        same(out, bits(last - here.rank, (7,), torch.float32))
        dist.destroy_process_group(group)


def failing_batch(here):
    """What an error leaves out of a batch is not sent; what came before it is, and what follows."""
    given, out = _given(here, 5), torch.zeros(5, device=here.device)
    if here.rank == 0:
        operations = [dist.P2POp(dist.isend, given, 1), dist.P2POp(dist.isend, given, 0)]
        with pytest.raises(ValueError, match="0"):
            dist.batch_isend_irecv(operations)
        dist.send(given + 1, 1)
    elif here.rank == 1:
        for number in range(2):
            dist.recv(out, 0)
            same(out, bits(0, (5,), torch.float32) + number, f"message {number}")
    batch(here)


def ahead_of_the_first_collective(here):
    """A message does not wait until a collective, which needs all ranks, has begun."""
    total, out = torch.ones(4, device=here.device), torch.zeros(4, device=here.device)
    if here.rank == 0:
        thread = threading.Thread(target=lambda: dist.all_reduce(total))
        thread.start()
        time.sleep(0.5)
        dist.send(_given(here, 4), 1)
        thread.join()
    else:
        if here.rank == 1:
            dist.recv(out, 0)
            same(out, bits(0, (4,), torch.float32))
        dist.all_reduce(total)
    same(total, torch.full((4,), float(here.size)))


def any_source(here, refused):
    """The driver's messages have a source; those with a tag go through the host."""
    if here.rank == 0 and refused:
        with pytest.raises(ValueError, match="name the rank that `recv` receives from"):
            dist.recv(torch.zeros(4, device=here.device))
    tag = 1 if refused else 0
    if here.rank:
        dist.send(_given(here, 4), 0, tag=tag)
        return
    for _ in range(here.size - 1):
        out = torch.zeros(4, device=here.device)
        sender = dist.recv(out, tag=tag)
        same(out, bits(sender, (4,), torch.float32), f"from {sender}")


def events(here):
    """What a profile calls a message that one rank sends, and what receives it."""
    out = torch.zeros(3, device=here.device)
    with torch.autograd.profiler.profile() as profile:
        dist.send(_given(here, 3), 1) if here.rank == 0 else None
        dist.recv(out, 0) if here.rank == 1 else None
    names = {event.name.rpartition(":")[2] for event in profile.function_events}
    return sorted(names & {"send", "recv"})
