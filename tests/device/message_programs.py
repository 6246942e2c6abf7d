# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_collectives.py: messages, barriers, objects, and what is refused."""

from __future__ import annotations

import datetime
import time

import torch
import torch.distributed as dist
from collective_programs import (
    Call,
    all_gather_into_tensor,
    all_reduce,
    bits,
    one,
    operation,
    reduce_scatter_tensor,
    reduced,
    same,
    small,
)
from ranks import shared_store

# --- point to point ---------------------------------------------------------------------------


def together(*operations):
    """Starts messages as one batch and waits for it."""
    for work in dist.batch_isend_irecv(list(operations)):
        work.wait()


def tags_out_of_order(here):
    """The receiver asks for the second message first."""
    if here.rank == 0:
        parts = [bits(0, (10,), torch.float32, tag).to(here.device) for tag in (1, 2)]
        works = [dist.isend(part, 1, tag=tag) for tag, part in zip((1, 2), parts)]
        for work in works:
            work.wait()
    elif here.rank == 1:
        for tag in (2, 1):
            out = torch.zeros(10, device=here.device)
            dist.recv(out, 0, tag=tag)
            same(out, bits(0, (10,), torch.float32, tag), f"tag {tag}")


def answer_before_an_older_message(here):
    """A message that comes while an older one is awaited is there at once."""
    first, second = (torch.zeros(10, device=here.device) for _ in range(2))
    given = torch.ones(10, device=here.device)
    if here.rank == 0:
        older, newer = dist.irecv(first, 1, tag=1), dist.irecv(second, 1, tag=2)
        newer.wait()
        dist.send(second, 1, tag=3)
        older.wait()
        same(first, torch.full((10,), 2.0))
    elif here.rank == 1:
        dist.send(given, 0, tag=2)
        dist.recv(second, 0, tag=3)
        dist.send(given + second, 0, tag=1)


def recv_any_source(here):
    """Rank 0 receives from every other, and is told from which."""
    if here.rank:
        dist.send(bits(here.rank, (4,), torch.float32).to(here.device), 0)
        return
    senders = set()
    for _ in range(here.size - 1):
        out = torch.zeros(4, device=here.device)
        sender = dist.recv(out)
        same(out, bits(sender, (4,), torch.float32), f"from {sender}")
        senders.add(sender)
    assert senders == set(range(1, here.size)), senders


def batch(here, count=10):
    """Both directions of a ring at once."""
    after, before = (here.rank + 1) % here.size, (here.rank - 1) % here.size
    given = bits(here.rank, (count,), torch.float32).to(here.device)
    out = torch.zeros(count, device=here.device)
    together(dist.P2POp(dist.isend, given, after), dist.P2POp(dist.irecv, out, before))
    same(out, bits(before, (count,), torch.float32))


def batch_of_several(here):
    """Several messages each way between two ranks, in order."""
    if here.rank > 1:
        return
    other = 1 - here.rank
    given = [bits(here.rank, (n + 1,), torch.float32, n).to(here.device) for n in range(3)]
    out = [torch.zeros(n + 1, device=here.device) for n in range(3)]
    sends = [dist.P2POp(dist.isend, one, other) for one in given]
    receives = [dist.P2POp(dist.irecv, one, other) for one in out]
    together(*([*sends, *receives] if here.rank else [*receives, *sends]))
    for number, tensor in enumerate(out):
        same(tensor, bits(other, (number + 1,), torch.float32, number))


def batch_in_inference_mode(here):
    with torch.inference_mode():
        batch(here)


def batch_whose_first_message_comes_last(here):
    """All results of a batch are there after its wait, in whatever order they came."""
    sizes = {1: 2**23, 2: 10}
    for number in range(1, 11):
        if here.rank == 0:
            out = {tag: torch.zeros(size, device=here.device) for tag, size in sizes.items()}
            assert [one[-1].item() for one in out.values()] == [0, 0]
            together(*(dist.P2POp(dist.irecv, one, 1, tag=tag) for tag, one in out.items()))
            assert [one[-1].item() for one in out.values()] == [number, number]
        elif here.rank == 1:
            for tag in (2, 1):
                given = torch.full((sizes[tag],), float(number), device=here.device)
                dist.send(given, 0, tag=tag)
                time.sleep(0.05)


# --- barriers, objects and coalescing ---------------------------------------------------------


def barrier(here, key, async_op=False):
    """No rank passes before the last has come."""
    store = shared_store()
    if here.rank == 0:
        time.sleep(0.2)
        store.set(key, "come")
    work = dist.barrier(async_op=async_op)
    if async_op:
        work.wait()
    assert store.check([key])


def barrier_with_devices(here):
    dist.barrier(device_ids=None if here.device.type == "cpu" else [here.device.index])


def monitored_barrier(here):
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30), wait_all_ranks=True)


def objects(here, kind, device):
    """Objects of Python, by tensors on the CPU or on the device."""
    mine = {"rank": here.rank, "text": "x" * (100 * here.rank)}
    every = [{"rank": rank, "text": "x" * (100 * rank)} for rank in range(here.size)]
    place = {"device": here.device} if device else {}
    if kind == "broadcast_object_list":
        got = [mine, here.rank]
        dist.broadcast_object_list(got, 1, **place)
        assert got == [every[1], 1], got
    elif kind == "all_gather_object":
        got = [None] * here.size
        dist.all_gather_object(got, mine)
        assert got == every, got
    elif kind == "gather_object":
        got = [None] * here.size if here.rank == 0 else None
        dist.gather_object(mine, got, 0)
        assert got == (every if here.rank == 0 else None), got
    elif kind == "scatter_object_list":
        got = [None]
        dist.scatter_object_list(got, every if here.rank == 0 else None, 0)
        assert got == [mine], got
    elif here.rank == 0:
        dist.send_object_list([mine, 3], 1, **place)
    elif here.rank == 1:
        got = [None, None]
        dist.recv_object_list(got, 0, **place)
        assert got == [every[0], 3], got


def tensors_in_objects(here):
    """An object that holds a tensor of the device arrives as one."""
    got = [None] * here.size
    dist.all_gather_object(got, bits(here.rank, (3,), torch.float32).to(here.device))
    for rank, tensor in enumerate(got):
        assert tensor.device.type == here.device.type
        same(tensor, bits(rank, (3,), torch.float32))


def coalesced(here, name, async_ops=False):
    """Several collectives of a kind as one."""
    collective = {
        "all_reduce": all_reduce,
        "all_gather_into_tensor": all_gather_into_tensor,
        "reduce_scatter_tensor": reduce_scatter_tensor,
    }[name]
    checks = []
    with dist._coalescing_manager(device=here.device, async_ops=async_ops) as manager:
        for number in range(3):

            def give(rank, part, number=number):
                return small(rank, (5 + number,), torch.float32, part + 10 * number)

            checks.append(collective(Call(here, give))[1])
    if async_ops:
        manager.wait()
    for check in checks:
        check()


def all_reduce_coalesced(here, op="SUM"):
    parts = [small(here.rank, (n + 2,), torch.float32, n).to(here.device) for n in range(3)]
    dist.all_reduce_coalesced(parts, operation(op))
    for number, tensor in enumerate(parts):
        everyone = [small(r, (number + 2,), torch.float32, number) for r in range(here.size)]
        reduced(op, tensor, everyone)


def all_gather_coalesced(here):
    given = [bits(here.rank, (n + 2,), torch.float32, n).to(here.device) for n in range(3)]
    out = [[torch.zeros_like(one) for one in given] for _ in range(here.size)]
    dist.all_gather_coalesced(out, given)
    for rank, tensors in enumerate(out):
        for number, tensor in enumerate(tensors):
            same(tensor, bits(rank, (number + 2,), torch.float32, number), f"{rank}, {number}")


# --- what is refused --------------------------------------------------------------------------


class Zeros:
    """Makes tensors of zeros on a rank's device."""

    def __init__(self, here):
        self.here, self.size = here, here.size

    def __call__(self, *shape, dtype=torch.float32):
        return torch.zeros(shape, dtype=dtype, device=self.here.device)


#: For each name a call that sends nothing, and which ranks make it: every, the root 0, or others.
REFUSED = {
    "all_reduce, BAND of floats": (lambda at: dist.all_reduce(at(2), dist.ReduceOp.BAND), "every"),
    "all_reduce, BXOR of floats": (lambda at: dist.all_reduce(at(2), dist.ReduceOp.BXOR), "every"),
    "all_reduce, MAX of complex": (
        lambda at: dist.all_reduce(at(2, dtype=torch.complex64), dist.ReduceOp.MAX),
        "every",
    ),
    "all_reduce, scaled sum of integers": (
        lambda at: dist.all_reduce(at(2, dtype=torch.int32), operation("PREMUL_SUM")),
        "every",
    ),
    "all_reduce, average of bool": (
        lambda at: dist.all_reduce(at(2, dtype=torch.bool), dist.ReduceOp.AVG),
        "every",
    ),
    "all_reduce, MAX of sparse": (
        lambda at: dist.all_reduce(at(2, 2).to_sparse(), dist.ReduceOp.MAX),
        "every",
    ),
    "all_reduce, no tensor": (lambda at: dist.all_reduce([1.0]), "every"),
    "broadcast, no such rank": (
        lambda at: dist.broadcast(at(2), at.size),
        "every",
    ),
    "reduce, no such rank": (lambda at: dist.reduce(at(2), at.size + 3), "every"),
    "broadcast, sparse": (lambda at: dist.broadcast(at(2, 2).to_sparse(), 0), "every"),
    "all_gather, list too short": (
        lambda at: dist.all_gather([at(2) for _ in range(at.size - 1)], at(2)),
        "every",
    ),
    "all_gather, list too long": (
        lambda at: dist.all_gather([at(2) for _ in range(at.size + 1)], at(2)),
        "every",
    ),
    "all_gather, empty list": (lambda at: dist.all_gather([], at(2)), "every"),
    "all_gather, another dtype": (
        lambda at: dist.all_gather([at(2, dtype=torch.float64) for _ in range(at.size)], at(2)),
        "every",
    ),
    "all_gather, results on the CPU": (
        lambda at: dist.all_gather([torch.zeros(2) for _ in range(at.size)], at(2)),
        "every",
    ),
    "all_gather_into_tensor, too small": (
        lambda at: dist.all_gather_into_tensor(at(2 * at.size - 1), at(2)),
        "every",
    ),
    "all_gather_into_tensor, another dtype": (
        lambda at: dist.all_gather_into_tensor(at(2 * at.size, dtype=torch.float64), at(2)),
        "every",
    ),
    "all_gather_into_tensor, result on the CPU": (
        lambda at: dist.all_gather_into_tensor(torch.zeros(2 * at.size), at(2)),
        "every",
    ),
    "reduce_scatter, list too short": (
        lambda at: dist.reduce_scatter(at(2), [at(2) for _ in range(at.size - 1)]),
        "every",
    ),
    "reduce_scatter, another dtype": (
        lambda at: dist.reduce_scatter(at(2), [at(2, dtype=torch.float64) for _ in range(at.size)]),
        "every",
    ),
    "reduce_scatter_tensor, another size": (
        lambda at: dist.reduce_scatter_tensor(at(2), at(2 * at.size + 1)),
        "every",
    ),
    "reduce_scatter_tensor, another dtype": (
        lambda at: dist.reduce_scatter_tensor(at(2, dtype=torch.float64), at(2 * at.size)),
        "every",
    ),
    "all_to_all_single, no multiple": (
        lambda at: dist.all_to_all_single(at(at.size + 1), at(at.size + 1)),
        "every",
    ),
    "all_to_all_single, splits of another sum": (
        lambda at: dist.all_to_all_single(at(at.size), at(at.size), [1] * at.size, [2] * at.size),
        "every",
    ),
    "all_to_all_single, too few splits": (
        lambda at: dist.all_to_all_single(at(at.size), at(at.size), [at.size], [at.size]),
        "every",
    ),
    "all_to_all_single, another dtype": (
        lambda at: dist.all_to_all_single(at(at.size, dtype=torch.float64), at(at.size)),
        "every",
    ),
    "all_to_all, list too short": (
        lambda at: dist.all_to_all([at(1)] * (at.size - 1), [at(1)] * (at.size - 1)),
        "every",
    ),
    "all_to_all, another dtype": (
        lambda at: dist.all_to_all([at(1, dtype=torch.float64)] * at.size, [at(1)] * at.size),
        "every",
    ),
    "gather, list too short": (
        lambda at: dist.gather(at(2), [at(2) for _ in range(at.size - 1)], 0),
        "root",
    ),
    "gather, a list at another rank": (
        lambda at: dist.gather(at(2), [at(2) for _ in range(at.size)], 0),
        "others",
    ),
    "gather, no list at the root": (lambda at: dist.gather(at(2), None, 0), "root"),
    "scatter, list too short": (
        lambda at: dist.scatter(at(2), [at(2) for _ in range(at.size - 1)], 0),
        "root",
    ),
    "scatter, another shape": (
        lambda at: dist.scatter(at(2), [at(3) for _ in range(at.size)], 0),
        "root",
    ),
    "scatter, a list at another rank": (
        lambda at: dist.scatter(at(2), [at(2) for _ in range(at.size)], 0),
        "others",
    ),
    "send, to itself": (lambda at: dist.send(at(2), at.here.rank), "every"),
    "send, no such rank": (lambda at: dist.send(at(2), at.size + 1), "every"),
    "send, sparse": (lambda at: dist.send(at(2, 2).to_sparse(), at.here.next), "every"),
    "recv, no such rank": (lambda at: dist.recv(at(2), at.size + 1), "every"),
    "all_reduce_coalesced, BAND of floats": (
        lambda at: dist.all_reduce_coalesced([at(2)], dist.ReduceOp.BAND),
        "every",
    ),
}


def refused(here, name):
    """A call raises an exception before anything is sent: the next collective is right."""
    call, callers = REFUSED[name]
    text = ""
    if callers == "every" or (here.rank == 0) == (callers == "root"):
        try:
            call(Zeros(here))
        except (TypeError, ValueError, RuntimeError) as error:
            text = f"{type(error).__name__}: {error}"
        else:
            raise AssertionError(f"{name}: was taken")
        assert text.split(": ", 1)[1].strip(), "the message is empty"
    one(here, all_reduce, torch.float32, (10,), small)
    return text
